"""The command line as a function."""

from command_line import cli

__all__ = ["cli"]
