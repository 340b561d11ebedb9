"""Decisions of replication, the same for every kind of source."""
