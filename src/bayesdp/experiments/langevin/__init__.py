"""Paper S4: stochastic-gradient MCMC as a private mechanism."""
