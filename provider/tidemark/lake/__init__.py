"""The logs of Delta tables, read without Spark by worker and driver."""
