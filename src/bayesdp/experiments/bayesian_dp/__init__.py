"""Papers S0 and S1: Bayesian differential privacy."""
