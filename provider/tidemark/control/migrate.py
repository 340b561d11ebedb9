"""Migrations, run from code: users need no alembic.ini."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

__all__ = ["HEAD", "VERSION_TABLE", "configuration", "current", "known", "upgrade"]

VERSION_TABLE = "tidemark_revision"
HEAD = "0035"


def configuration(connection: sa.Connection | None = None) -> Config:
    """Alembic's configuration for the migrations in this package, on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def current(connection: sa.Connection) -> str | None:
    """The revision of the database; None if it has none. Every task asks for it, and Alembic's own function would log
    each time.
    """
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    revision: str | None = connection.execute(
        sa.select(sa.column("version_num")).select_from(sa.table(VERSION_TABLE))
    ).scalar()
    return revision


def known(revision: str | None) -> bool:
    """Whether this release has `revision`. A store of a newer release must not be touched."""
    return revision is None or revision in _revisions()


@cache
def _revisions() -> frozenset[str]:
    """Of this release: they are read from their files once in a process, not by every store that is opened."""
    script = ScriptDirectory.from_config(configuration())
    return frozenset(step.revision for step in script.walk_revisions())


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Runs missing migrations inside the transaction of `connection`; all or none, if the database's DDL rolls back."""
    command.upgrade(configuration(connection), revision)
