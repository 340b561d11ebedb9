"""Nouns of change streams."""
