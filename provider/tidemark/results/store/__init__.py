"""The index of stored answers."""
