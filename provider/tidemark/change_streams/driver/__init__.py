"""Change streams in Spark: capture into a log table, and reading it partition by partition."""
