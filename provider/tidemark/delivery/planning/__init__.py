"""Decisions about writes: what a target's log says of them, and what fits into it."""
