"""Decisions: pure functions that take values, times included, and return values; they never act."""
