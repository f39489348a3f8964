"""Paper S3: per-instance privacy of DP-SGD."""
