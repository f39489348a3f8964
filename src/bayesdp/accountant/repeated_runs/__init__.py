"""Bounds from several runs of one plan."""
