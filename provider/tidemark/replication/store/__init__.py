"""Replications, their objects and their writes in the control store."""
