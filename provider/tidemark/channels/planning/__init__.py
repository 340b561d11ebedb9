"""Decisions about channels: pure functions."""
