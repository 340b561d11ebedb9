"""Decisions of clustering."""
