"""Decisions about streams: pure functions that take values and return values."""
