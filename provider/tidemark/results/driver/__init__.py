"""Queries run by Spark, whose answers become Parquet files."""
