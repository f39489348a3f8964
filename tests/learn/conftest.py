"""A small real problem and a plan for it."""

from digits_problem import digits, plan

__all__ = ["digits", "plan"]
