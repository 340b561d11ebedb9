"""A shop's database that is in use while it is replicated: a temporary PostgreSQL, its writer, and the comparison."""
