"""The noise of Langevin dynamics as a private mechanism."""
