"""Servers for users' own tests: a local Spark with Delta, a temporary PostgreSQL, and a temporary MariaDB."""

from __future__ import annotations

from tidemark.testing.mariadb import (
    MariaDBNotInstalled,
    ThrowAwayMariaDB,
    mariadb_programs,
    throw_away_mariadb,
)
from tidemark.testing.postgresql import (
    PostgresNotInstalled,
    ThrowAwayPostgres,
    postgresql_programs,
    throw_away_postgresql,
)
from tidemark.testing.spark import DELTA_PACKAGE, SHORT_LIVED_JVM, local_spark

__all__ = [
    "DELTA_PACKAGE",
    "SHORT_LIVED_JVM",
    "MariaDBNotInstalled",
    "PostgresNotInstalled",
    "ThrowAwayMariaDB",
    "ThrowAwayPostgres",
    "local_spark",
    "mariadb_programs",
    "postgresql_programs",
    "throw_away_mariadb",
    "throw_away_postgresql",
]
