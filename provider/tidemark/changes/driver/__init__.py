"""Change sets: planned from the log, read through log-only tables, and netted by row id."""
