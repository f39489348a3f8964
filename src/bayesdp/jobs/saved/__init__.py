"""What a finished folder has of its model: a network, or a posterior, and how records are read for it."""
