"""The warm Spark of a host: Spark's own Connect server, shared by the tasks of one user with equal settings."""
