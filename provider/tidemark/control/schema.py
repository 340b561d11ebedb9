"""What all tables of the control store have in common, the store's own table, and where the others are."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

__all__ = ["SUBJECTS", "UtcDateTime", "all_tables", "metadata", "stores"]

SUBJECTS = (
    "tidemark.change_streams.store.schema",
    "tidemark.replication.store.schema",
    "tidemark.streams.store.schema",
)

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, kept in UTC; a naive one is refused. Microseconds survive on every store."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Stores without zones hand back naive UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


stores = sa.Table(
    "tidemark_store",
    metadata,
    sa.Column("store_id", sa.String(36), primary_key=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("pruned_at", UtcDateTime),  # when a task last began to drop old history
)


def all_tables() -> sa.MetaData:
    """The tables of the store and of all subjects. Migrations lead to exactly these."""
    for name in SUBJECTS:
        importlib.import_module(name)
    return metadata
