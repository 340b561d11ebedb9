"""Search paths of a table, predicates, and the messages of their upkeep."""
