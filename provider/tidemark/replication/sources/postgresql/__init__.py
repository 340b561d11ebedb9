"""PostgreSQL: what it has, what its log says, and the slot that keeps it."""
