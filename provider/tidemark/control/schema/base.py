"""What all tables of the control store have in common."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from tidemark.model.replication import LogPosition

__all__ = ["PositionText", "UtcDateTime", "metadata"]

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


class PositionText(TypeDecorator[LogPosition]):
    """A position as `commit/sequence`. It is compared in Python, or for equality: databases differ in how they sort."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: LogPosition | None, dialect: Dialect) -> str | None:
        """The text."""
        return None if value is None else f"{value.commit}/{value.sequence}"

    def process_result_value(self, value: str | None, dialect: Dialect) -> LogPosition | None:
        """What was stored."""
        if value is None:
            return None
        commit, _, sequence = value.rpartition("/")
        return LogPosition(commit, int(sequence))
