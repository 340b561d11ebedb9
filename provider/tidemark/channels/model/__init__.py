"""Nouns of channels."""
