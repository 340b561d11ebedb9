"""Jobs of clustering on Spark."""
