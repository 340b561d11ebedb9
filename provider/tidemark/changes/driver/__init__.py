"""Change sets: planned from the log, read through log-only tables, netted by row id."""
