"""The route of histories: the control store answers, or a look at the lake in the background. It waits for no log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import FastAPI, HTTPException, Query

from tidemark.control.object_histories import MOST, history_of, looked_history
from tidemark.control.object_kinds import KINDS
from tidemark.control.object_list import find, owner_dags
from tidemark.errors import InvalidArgument
from tidemark.plugins.monitor.access import ReadableDags
from tidemark.plugins.monitor.asking import API, NO_NUL, Connection, Cursor, gate_to, refusals
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gates
from tidemark.plugins.monitor.history_answers import HistoryAnswer, KeptHistory, history_answer, with_look
from tidemark.plugins.monitor.reading import looked_at
from tidemark.replication.store import replications
from tidemark.streams.worker.questions import LogQuestion

__all__ = ["add_history"]

OneKind = Annotated[str, Query(pattern=f"^({'|'.join(KINDS)})$", description=f"One of {', '.join(KINDS)}.")]
ObjectName = Annotated[
    str, Query(min_length=1, max_length=500, pattern=NO_NUL, description="Name as in the list of objects, or the uid.")
]
PartName = Annotated[str | None, Query(max_length=50, pattern=NO_NUL, description="One part of the history alone.")]
Points = Annotated[int, Query(ge=1, le=MOST, description="At most this many points of each part.")]


def add_history(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    """Adds the route."""

    @app.get(f"{API}/history", responses=refusals("object"))
    async def history(
        readable: ReadableDags,
        kind: OneKind,
        name: ObjectName,
        connection: Connection = None,
        part: PartName = None,
        cursor: Cursor = None,
        limit: Points = 200,
    ) -> HistoryAnswer:
        """The history of an object, the newest points of each part first. A cursor leads to those that follow."""
        now, gate = clock(), gate_to(gates, connection)

        def read(monitored: MonitoredConnection) -> tuple[MonitoredConnection, KeptHistory, LogQuestion | None]:
            wish = {"part": part, "cursor": cursor, "limit": limit}
            if monitored.store is None:
                raise HTTPException(404, f"No {kind} has that name or uid.")
            kept = monitored.store.read(lambda c: _read(c, monitored.conn_id, kind, name, now=now, **wish))
            return monitored, *kept

        monitored, kept, question = await gate.ask(read)
        if question is not None:
            looks = await gate.status_cache.answers([question], monitored.tables)
            kept = with_look(kept, looks, looked_at(looks, now), limit)
        return history_answer(kept, connection_ids(), now, readable)


def _read(
    connection: sa.Connection, conn_id: str, kind: str, name: str, *, now: datetime, **wish: Any
) -> tuple[KeptHistory, LogQuestion | None]:
    """The history in the store, and the question to the lake, if that has the history."""
    try:
        one = find(connection, kind, name, now=now)
    except InvalidArgument as error:
        raise HTTPException(404, str(error)) from error
    try:
        parts = history_of(connection, kind, one.uid, **wish)
    except InvalidArgument as error:
        raise HTTPException(422, str(error)) from error
    looked = looked_history(kind)
    question = None if looked is None else looked.question(connection, one.uid)
    owners = owner_dags(connection, (point.of for shown in parts for point in shown.points if point.of is not None))
    return KeptHistory(conn_id, one, parts, replications.count(connection), owners), question
