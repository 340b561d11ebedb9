"""Links from a task to its streams and to Spark."""
