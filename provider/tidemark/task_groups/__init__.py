"""Task groups: a transaction over several tasks."""
