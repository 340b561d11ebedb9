"""Writes that happen once: append, merge, SQL and functions, each marked in the log of its target."""
