"""Decisions on change streams."""
