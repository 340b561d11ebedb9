"""Decisions about changes: which files hold them, and which sources and views can be read."""
