"""Many runs of one plan: what training costs a named record, a priori."""
