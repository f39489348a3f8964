"""Paper S2: private variational inference."""
