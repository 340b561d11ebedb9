"""Streams in Spark: windows, external tables, SQL and functions, and the jobs that use them."""
