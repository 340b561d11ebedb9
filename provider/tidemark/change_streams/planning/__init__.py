"""Decisions about change streams: definitions, tokens, churn, chunks."""
