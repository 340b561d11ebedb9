"""Landing tables among all objects. Their logs alone have the state of their channels, so `look` asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.channels.store.landing_tables import KIND, with_uids
from tidemark.control.object_kinds import Advice, Lag, ObjectEntry, ObjectKind, Severity

__all__ = ["LANDING_TABLE", "landing_lags"]


def _entries(connection: sa.Connection, uids: Sequence[str]) -> list[ObjectEntry]:
    found = with_uids(connection, uids)
    return [ObjectEntry(uid, table.name, "landing", Severity.OK) for uid, table in found.items()]


def landing_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """Nothing: the store does not know the commits of channels."""
    return {}


LANDING_TABLE = ObjectKind(
    KIND,
    _entries,
    "channels.store.objects:landing_lags",
    look="channels.worker.landing_states:LANDING_LOOK",
    ties="channels.store.ties:landing_ties",
    touched="channels.store.touched:landings_of_runs",
    last_runs="channels.store.touched:landing_runs",
    advice={
        "": Advice(
            "Look at its channels: let the writers of silent ones write again, or close these. A writer whose "
            "token is lost opens its channel again, and sends from its own last mark.",
            ("airflow tidemark objects show landing_table {name}",),
        )
    },
)
