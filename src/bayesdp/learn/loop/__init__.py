"""The loop of private learning: a plan, its steps as one compiled program, checkpoints, and the run that comes out."""
