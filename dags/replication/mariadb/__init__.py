"""The demo's MariaDB: its server, its shop, its writer, and its journal."""
