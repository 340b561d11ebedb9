"""The demo's PostgreSQL: its server, its shop, its writer, and its journal."""
