"""Streams: each consumer reads the changes of a table, a view or files once, in transactions."""
