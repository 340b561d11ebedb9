"""Alembic migrations, numbered; shipped in the package and run from code."""
