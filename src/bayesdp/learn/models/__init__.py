"""Models as learners see them: a prior and the likelihood of one record, read from NumPyro, functions or networks."""
