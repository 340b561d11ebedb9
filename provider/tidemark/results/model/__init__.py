"""Queries, their answers, and the reasons why one is not reused."""
