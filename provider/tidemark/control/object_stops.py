"""The reasons for which persons have stopped objects, by the history of acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.control.object_kinds import kind_named
from tidemark.control.object_list import ShownObject
from tidemark.control.schema import acts
from tidemark.control.sentences import stop_words

__all__ = ["stops_of"]

_of = acts.c
_ONE_TRANSACTION = timedelta(minutes=1)  # a writer that takes longer is ended


def stops_of(connection: sa.Connection, kind: str, found: Sequence[ShownObject]) -> Mapping[str, str]:
    """Reason and person for each of these objects that a person has stopped by an act, by uid. One query.

    A task may have stopped it since, and leaves no act. The act counts if the state has held since then.
    """
    about = kind_named(kind)
    if not about.stops:
        return {}
    since = {one.uid: one.since for one in found if one.state in about.stopped}
    own = (_of.kind == kind) & _of.uid.in_([one.uid for one in found]) & _of.act.in_(sorted(about.stops))
    newest = sa.select(sa.func.max(_of.id)).where(own).group_by(_of.uid)
    query = sa.select(_of.uid, _of.who, _of.why, _of.done_at).where(_of.id.in_(newest))
    told = {
        row.uid: stop_words(row.why, row.who)
        for row in connection.execute(query)
        if _began_then(since.get(row.uid), row.done_at)
    }
    return {uid: words for uid, words in told.items() if words is not None}


def _began_then(since: datetime | None, done_at: datetime) -> bool:
    return since is not None and abs(since - done_at) < _ONE_TRANSACTION
