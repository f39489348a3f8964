"""Posteriors that stay secret: samples of them are released and accounted for."""
