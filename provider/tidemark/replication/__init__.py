"""Replication: databases are backfilled and captured into Delta tables."""
