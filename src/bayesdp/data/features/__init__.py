"""Features of images: an extractor of the user's own, and a place to keep what was computed once."""
