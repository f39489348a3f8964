"""The command line: thin. Each command parses its options, calls the library and prints what it says."""

from bayesdp.cli.app import main

__all__ = ["main"]
