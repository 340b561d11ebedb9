"""Streams on views: the changes of a query's result, from the changes of its base tables."""
