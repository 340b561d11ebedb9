"""Streams on views: which queries can be followed, and what their changes are made of."""
