"""Runs of jobs whose event logs are kept."""
