"""What the tests of shared parts of experiments share."""

from quick_compilation import compile_quickly

__all__ = ["compile_quickly"]
