"""The version of this package: a module of its own, so that a report can name it without importing everything."""

__version__ = "0.1.0"
