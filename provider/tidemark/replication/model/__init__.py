"""Nouns of replication."""
