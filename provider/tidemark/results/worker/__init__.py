"""Looking up, keeping and removing answers, without Spark."""
