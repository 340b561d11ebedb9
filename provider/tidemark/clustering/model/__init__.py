"""Nouns of clustering."""
