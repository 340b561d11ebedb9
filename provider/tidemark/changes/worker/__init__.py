"""Facts about changes in a table's log, for the worker."""
