"""Search optimization: statements, upkeep, and reads of few files."""
