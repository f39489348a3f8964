"""What tests of several modules together share with those of one."""

from command_line import cli
from digits_problem import digits
from quick_compilation import compile_quickly
from report_browser import browser

__all__ = ["browser", "cli", "compile_quickly", "digits"]
