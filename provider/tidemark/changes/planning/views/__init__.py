"""Streams on views: the queries that can be followed, and the composition of their changes."""
