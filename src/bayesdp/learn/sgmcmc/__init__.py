"""Private stochastic-gradient MCMC: one file for each sampler."""
