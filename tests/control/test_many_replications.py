"""Many replications are described, and their tables dated, in as many queries as one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.control.change_stream_model import Clock
from tests.control.replication_model import Ends, World
from tidemark.control.cursors import Part
from tidemark.control.store import ControlStore
from tidemark.replication.model.replication import Actor, Selection
from tidemark.replication.store.schema import replicated_objects
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.status import ReplicationStatus, describe, describe_all, describe_part, table_lags

FEW, MANY = 1, 20


def queries(store: ControlStore, act: Callable[[], object]) -> int:
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(store._engine, "before_cursor_execute", note)
    act()
    sa.event.remove(store._engine, "before_cursor_execute", note)
    return len(seen)


def more(world: World, count: int) -> list[str]:
    """So many replications beside the one of the world, each with a table like the first of it; the tables' uids."""
    like = world.store.read(lambda c: dict(c.execute(sa.select(replicated_objects)).mappings().first() or {}))
    rows = []
    for number in range(count):
        made = world.create(f"r{number:02}", Selection(include=("s",)), event_log=f"file:///events/{number}")
        lifecycle.start(world.store, made.name, by=Actor("ana", "it is needed", f"dag/run-{number}/task/-1"))
        rows.append({**like, "uid": f"table-{number}", "replication_uid": made.uid})
    world.store.write(lambda c: c.execute(replicated_objects.insert(), rows))
    return [str(row["uid"]) for row in rows]


def test_twenty_replications_take_as_many_queries_as_one(copied_store: ControlStore, tmp_path: Path) -> None:
    world, store = World(copied_store, tmp_path), copied_store
    world.start("s.a", "s.b")
    world.backfill("s.a")
    world.backfill("s.b", Ends.WELL)
    described, uids = [describe(store, "r")], [one.uid for one in world.objects()]
    needed = [queries(store, lambda: describe_all(store)), _lag_queries(store, uids[:1])]
    uids += more(world, MANY - FEW)
    assert [queries(store, lambda: describe_all(store)), _lag_queries(store, uids)] == needed
    assert queries(store, lambda: describe(store, "r")) == needed[0]
    everything = describe_all(store)
    assert [one.replication.name for one in everything] == ["r", *(f"r{number:02}" for number in range(MANY - FEW))]
    assert everything[0].objects == described[0].objects
    assert _by_parts(store) == list(everything)
    assert queries(store, lambda: describe_part(store, Part(3))) == needed[0]
    assert [one.last_runs.get(None) for one in everything[1:3]] == ["dag/run-0/task/-1", "dag/run-1/task/-1"]
    assert [len(one.objects) for one in everything[1:]] == [1] * (MANY - FEW)
    assert len(store.read(lambda c: table_lags(c, uids, store.clock() + timedelta(hours=1)))) == len(uids)


def _by_parts(store: ControlStore) -> list[ReplicationStatus]:
    found, part = list[ReplicationStatus](), Part(3)
    while True:
        shown = describe_part(store, part)
        found += shown.replications
        if shown.cursor is None:
            assert len(found) == shown.total
            return found
        part = Part(3, cursor=shown.cursor)


def _lag_queries(store: ControlStore, uids: list[str]) -> int:
    assert isinstance(store.clock, Clock)
    now = store.clock()
    return queries(store, lambda: store.read(lambda c: table_lags(c, uids, now)))
