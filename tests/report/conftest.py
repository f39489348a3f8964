"""One browser for all tests of pages."""

from report_browser import browser

__all__ = ["browser"]
