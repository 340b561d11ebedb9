"""The changes of a table or a view between two versions."""
