"""The routes of the overview and of the history of acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Query

from tidemark.control.lineage_graph import Graph, dependents
from tidemark.control.object_acts import ActsPart, acts_part
from tidemark.control.object_list import ObjectsWish
from tidemark.control.object_needs import RANKS, Key, Place, place_of_cursor
from tidemark.plugins.monitor.access import MayAct, ReadableDags
from tidemark.plugins.monitor.asking import API, Connection, Cursor, Kind, Limit, Text, gate_to, refusals
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gates
from tidemark.plugins.monitor.kept_graphs import KeptGraphs
from tidemark.plugins.monitor.overview_answers import ActsAnswer, OverviewAnswer, acts_answer, need_answer
from tidemark.plugins.monitor.watch import Watch
from tidemark.streams.worker.object_needs import NeedsPage, needs_page

__all__ = ["add_overview"]

_NOTHING = NeedsPage(0, dict.fromkeys(RANKS, 0), {}, 0, (), None)


def add_overview(app: FastAPI, gates: Gates, graphs: KeptGraphs, clock: Callable[[], datetime]) -> None:
    """Adds both routes."""

    @app.get(f"{API}/overview", responses=refusals("connection"))
    async def overview(
        readable: ReadableDags,
        may: MayAct,
        connection: Connection = None,
        kind: Kind = None,
        search: Text = "",
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> OverviewAnswer:
        """A part of the objects of every kind that need attention, the worst first: why, since when, and the way out.

        It reads the control store alone. Logs are looked at, and lineage is read, in the background while somebody
        asks.
        """
        after = None if cursor is None else place_of_cursor(cursor)
        now, gate = clock(), gate_to(gates, connection)
        wish = ObjectsWish(kind, search=search)
        read = partial(_page, watch=gate.watch, graphs=graphs, wish=wish, after=after, limit=limit, now=now)
        monitored, (page, looked_at, counts) = await gate.ask(lambda monitored: (monitored, read(monitored)))
        needs = tuple(need_answer(one, readable, may, monitored.conn_id, counts) for one in page.needs)
        return OverviewAnswer(
            connection=monitored.conn_id,
            connections=connection_ids(),
            store="absent" if monitored.store is None else "ready",
            now=now,
            looked_at=looked_at,
            total=page.total,
            counts=page.counts,
            objects=page.kinds,
            not_looked_at=page.not_looked_at,
            needs=needs,
            cursor=None if page.following is None else page.following.cursor,
        )

    _add_acts(app, gates, clock)


def _add_acts(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    @app.get(f"{API}/acts", responses=refusals("connection"))
    async def acts(
        readable: ReadableDags,
        connection: Connection = None,
        kind: Kind = None,
        uid: Annotated[Text, Query(description="Of one object.")] = "",
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> ActsAnswer:
        """The newest acts of persons on objects, with who did them and why for those who may read the owner's DAG.

        A cursor leads to the acts that follow.
        """
        wish = {"kind": kind, "uid": uid or None, "limit": limit, "cursor": cursor}
        found = await gate_to(gates, connection).ask(lambda monitored: (monitored.conn_id, _acts(monitored, **wish)))
        return acts_answer(*found, clock(), readable)


def _page(
    monitored: MonitoredConnection,
    *,
    watch: Watch,
    graphs: KeptGraphs,
    wish: ObjectsWish,
    after: Place | None,
    limit: int,
    now: datetime,
) -> tuple[NeedsPage, datetime | None, Mapping[Key, int]]:
    """The part, the time of the last look that is in it, and how many depend on its objects."""
    store, known = monitored.store, watch.known
    if store is None:
        return _NOTHING, known.looked_at, {}
    found = store.read(lambda c: needs_page(c, known, wish, after=after, limit=limit, now=now))
    watch.wake(store, monitored.tables)
    return found, known.looked_at, _dependents(found, graphs.at_hand(monitored.conn_id, store))


def _dependents(page: NeedsPage, graph: Graph | None) -> Mapping[Key, int]:
    """How many tables and objects depend on each object of the page, by the graph at hand. Nobody waits for one."""
    if graph is None:
        return {}
    found = {(one.shown.kind, one.shown.uid): dependents(graph, (one.shown.kind, one.shown.uid)) for one in page.needs}
    return {key: count for key, count in found.items() if count is not None}


def _acts(monitored: MonitoredConnection, **wish: Any) -> ActsPart:
    if monitored.store is None:
        return ActsPart((), None)
    return monitored.store.read(lambda connection: acts_part(connection, **wish))
