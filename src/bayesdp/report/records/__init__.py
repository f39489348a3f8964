"""The page and the table of single records."""
