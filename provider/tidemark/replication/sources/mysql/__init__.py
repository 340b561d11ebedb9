"""MySQL and MariaDB: their tables, and what their binary logs say of them."""
