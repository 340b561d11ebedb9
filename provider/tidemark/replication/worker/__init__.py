"""Replications: their definition, their states, and what moves when a job has ended."""
