"""Change streams in SQL: what defines them, and what of a query Spark does not know."""
