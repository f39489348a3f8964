"""Releases: what of a run may be published, as a bundle that others can use and check.

bundle.publish(run, out)   →  the model, a page, a model card, what was left out and why, checksums
verify.verify(bundle)      →  every file as it was, and the ε recomputed from the plan, without JAX
"""
