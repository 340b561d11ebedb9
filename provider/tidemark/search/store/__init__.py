"""Search paths and their upkeep in the control store."""
