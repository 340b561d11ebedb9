"""Operators: what a task does with streams; they store arguments, and work in execute."""
