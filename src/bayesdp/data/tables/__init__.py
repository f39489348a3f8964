"""Real tables: how cells are written, what is done where there is none, and where tables come from."""
