"""The common parts of all tables of the control store, its own tables, and the modules of the others."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

__all__ = ["SUBJECTS", "UtcDateTime", "acts", "all_tables", "looks", "metadata", "objects", "samples", "stores"]

SUBJECTS = (
    "tidemark.acceleration.store.schema",
    "tidemark.change_streams.store.schema",
    "tidemark.channels.store.schema",
    "tidemark.clustering.store.schema",
    "tidemark.materialized.store.schema",
    "tidemark.pipes.store.schema",
    "tidemark.replication.store.schema",
    "tidemark.results.store.schema",
    "tidemark.search.store.schema",
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
    """An aware time, stored in UTC with microseconds in every database. A naive time is an error."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The aware time. Databases without zones return naive UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


stores = sa.Table(
    "tidemark_store",
    metadata,
    sa.Column("store_id", sa.String(36), primary_key=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("pruned_at", UtcDateTime),  # the last time when a task began to delete old history
)

objects = sa.Table(
    "tidemark_object",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),  # with that of the object that it belongs to before it: shop/s.t
    sa.Column("folded_name", sa.Text, nullable=False),
    sa.Column("within", sa.Text),  # name of the object that it belongs to
    sa.Column("owner_dag", sa.Text),  # whose run created it or wrote it last; NULL: none is known
    sa.Column("state", sa.String(32), nullable=False),  # in the subject's own word
    sa.Column("severity", sa.String(16), nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),  # of this state and severity
    sa.Column("problem", sa.Text),
    sa.Column("problem_dags", sa.Text),  # JSON: whoever may read all of these DAGs may read the problem; NULL: nobody
    sa.Column("ended_at", UtcDateTime),  # NULL: it lives
)
sa.Index("ix_tidemark_object_folded_name", objects.c.kind, objects.c.folded_name)
sa.Index("ix_tidemark_object_live", objects.c.ended_at, objects.c.kind, objects.c.severity, objects.c.state)

acts = sa.Table(
    "tidemark_act",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("uid", sa.String(36), nullable=False),
    sa.Column("name", sa.Text, nullable=False),  # as it was called then
    sa.Column("act", sa.String(32), nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("done_at", UtcDateTime, nullable=False),
    sa.Column("revision", sa.Text, nullable=False),  # JSON: the facts that were shown to the person who decided
    sa.Column("arguments", sa.Text),  # JSON: the values of the act's fields; NULL if it has none
)
sa.Index("ix_tidemark_act_uid", acts.c.kind, acts.c.uid, acts.c.id)

samples = sa.Table(
    "tidemark_sample",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("uid", sa.String(36), nullable=False),
    sa.Column("moved_at", UtcDateTime, nullable=False),  # the end of the run
    sa.Column("run", sa.Text),
    sa.Column("figures", sa.Text, nullable=False),  # JSON: name → number
)
sa.Index("ix_tidemark_sample_uid", samples.c.uid, samples.c.kind, samples.c.id)  # the newest of an object

looks = sa.Table(
    "tidemark_look",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("turn_at", UtcDateTime),  # when it had its last turn; NULL: it waited for one in vain
    sa.Column("looked_at", UtcDateTime),  # when its logs answered last; NULL: never
)


def all_tables() -> sa.MetaData:
    """The tables of the store and of all subjects, exactly as migrations create them."""
    for name in SUBJECTS:
        importlib.import_module(name)
    return metadata
