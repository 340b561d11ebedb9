"""Replication on real Spark, Delta and PostgreSQL."""
