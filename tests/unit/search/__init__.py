"""Search paths without Spark."""
