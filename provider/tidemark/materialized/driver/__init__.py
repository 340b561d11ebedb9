"""Kept queries in Spark: their text resolved, their tables created, and their rows read."""
