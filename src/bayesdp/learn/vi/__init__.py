"""Private variational inference."""
