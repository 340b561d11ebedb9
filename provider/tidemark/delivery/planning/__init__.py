"""Decisions about writes: their state in a target's log, and whether rows fit the target."""
