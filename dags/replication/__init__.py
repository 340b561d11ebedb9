"""A shop's database that is used while it is replicated: a throw-away PostgreSQL, its writer, and how to compare."""
