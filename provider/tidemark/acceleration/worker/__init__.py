"""Event logs, estimates and runs."""
