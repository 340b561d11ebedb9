"""Servers for users' own tests: a local Spark with Delta, and a temporary PostgreSQL."""

from __future__ import annotations

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
    "PostgresNotInstalled",
    "ThrowAwayPostgres",
    "local_spark",
    "postgresql_programs",
    "throw_away_postgresql",
]
