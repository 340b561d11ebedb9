"""Decisions about changes: the files that have them, and the sources and views that can be read."""
