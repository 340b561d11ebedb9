"""The state of a landing table, by the records of its channels in its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from tidemark.channels.planning.listing import age_of
from tidemark.channels.planning.restores import records_now
from tidemark.channels.store.landing_tables import with_uids
from tidemark.control.object_kinds import Severity
from tidemark.control.object_list import ShownObject
from tidemark.model.streams import TableRef
from tidemark.streams.worker.object_states import LakeLook
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.sources import Tables

__all__ = ["LANDING_LOOK"]

_SILENT_AFTER = timedelta(days=23)  # a week before an idle channel is removed


def _questions(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, LogQuestion]:
    return {
        uid: LogQuestion(uid, (), frozenset({table.path}), partial(_records, table))
        for uid, table in with_uids(connection, uids).items()
    }


def _records(table: TableRef, tables: Tables) -> Any:
    return records_now(tables(table))


def _judge(one: ShownObject, seen: Any, now: datetime) -> ShownObject:
    """The worst of its channels: one whose token is lost, then one that is silent for long."""
    if isinstance(seen, str):
        return replace(one, state="unreadable", severity=Severity.FAILED, since=None, notice=seen)
    if not seen:
        return replace(one, state="without channels", severity=Severity.WAITING, since=None)
    ages = {key: age_of(record, now) for key, record in seen.items()}
    shown = replace(
        one,
        lag_seconds=min(ages.values()).total_seconds(),
        lag_amount=len(seen),
        lag_unit="channels" if len(seen) > 1 else "channel",
    )
    lost = sorted(key for key, record in seen.items() if record.token_lost is not None)
    silent = sorted(key for key, age in ages.items() if age > _SILENT_AFTER)
    if lost:
        notice = f"the offset token is lost of {', '.join(lost)}: {seen[lost[0]].token_lost}"
        return replace(shown, state="token lost", severity=Severity.FAILED, since=None, notice=notice)
    if silent:
        notice = f"channels that have committed nothing for {_SILENT_AFTER.days} days: {', '.join(silent)}"
        return replace(shown, state="silent", severity=Severity.WARNING, since=None, notice=notice)
    return shown


LANDING_LOOK = LakeLook(_questions, _judge)
