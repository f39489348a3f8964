"""What private inference returns: posteriors that may be published, and how they are told to people."""
