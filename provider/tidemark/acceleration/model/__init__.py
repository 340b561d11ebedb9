"""Nouns of query acceleration."""
