"""Other authors' methods that the papers compare with."""
