"""DATABASES: their catalogs and logs, read without Spark, for both processes."""
