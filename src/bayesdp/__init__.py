"""bayesdp: train on people's data and say truthfully what it costs in privacy."""

__version__ = "0.1.0"
