"""Nouns of streams."""
