"""Channels by example: a writer that needs nothing but Python's standard library, and a demo with four of them."""
