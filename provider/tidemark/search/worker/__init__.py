"""Defining search paths, and keeping them up, without Spark."""
