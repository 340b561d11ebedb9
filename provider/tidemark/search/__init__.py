"""Search paths: small tables that say which files of a table can hold a value."""
