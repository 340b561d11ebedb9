"""Decisions about loads. They touch nothing."""
