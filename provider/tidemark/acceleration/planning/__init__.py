"""Decisions of query acceleration."""
