"""People with several rows: which rows are whose, and how they are split, bounded and laid out."""
