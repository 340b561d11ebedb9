"""Nouns of delivery: transactions, marks, quarantine."""
