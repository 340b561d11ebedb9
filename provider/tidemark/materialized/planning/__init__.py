"""Decisions about kept queries: their shape, and the cost of a refresh."""
