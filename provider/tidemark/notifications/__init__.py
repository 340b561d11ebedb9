"""Telling people about streams, from callbacks of tasks and DAGs and from deadlines."""
