"""What changed in a table or a view between two versions."""
