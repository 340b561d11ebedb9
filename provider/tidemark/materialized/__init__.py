"""Materialized views and dynamic tables: the result of a query, kept as a table and refreshed from changes."""
