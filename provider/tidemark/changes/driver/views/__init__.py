"""Streams on views: the changes of a query's result, computed from the changes of its base tables."""
