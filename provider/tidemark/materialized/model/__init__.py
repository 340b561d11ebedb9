"""Nouns of materialized views and dynamic tables."""
