"""Loads on the Spark side."""
