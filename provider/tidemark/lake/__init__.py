"""THE LOG: Delta transaction logs read without Spark, for the worker and the driver alike."""
