"""A store of the release whose words were write_down, flagged, ask and unfit_values goes on after its migration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command

from tests.control.change_stream_model import START
from tests.control.replication_model import ME, World, at, columns
from tidemark.control import migrate
from tidemark.control.store import ControlStore
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import TableRef
from tidemark.replication.model.jobs import ApplyReport
from tidemark.replication.model.replication import InvalidValues, LogPosition, ObjectState, ReplicationOptions
from tidemark.replication.store import object_writes
from tidemark.replication.store.object_writes import WriteKind, WriteState
from tidemark.replication.worker import objects, status
from tidemark.replication.worker.definitions import get_replication

WHY = 'column y was added with a default that its log does not have ("flagged": so to speak)'
OPTIONS = (
    '{"backfill":true,"backfill_exclude":[],"gives_way_after":5.0,"hash_columns":[],"hash_mark":null,'
    '"mask_columns":[],"max_events":7,"mode":"merge","numeric_as":null,"target":"lake","unfit_values":"null",'
    '"without_key":"append_only"}'
)
DAG_RUN = "replicate/run-1/replicate.objects.write_down/0"


def text(position: LogPosition) -> str:
    return f"{position.commit}/{position.sequence}"


def report(applied: LogPosition, flagged: str | None) -> str:
    said = {
        "applied": {"commit": applied.commit, "sequence": 0},
        "events": 2,
        "flagged": flagged,
        "found": 0,
        "newest_source_timestamp": None,
        "rows": {"deleted": 0, "inserted": 2, "updated": 0},
        "schema": json.loads(to_json(columns("id", "x"))),
        "segments": 1,
    }
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def replication(root: Path) -> dict[str, Any]:
    return {
        "uid": "u-r", "name": "r", "folded_name": "r", "kind": "postgresql", "source_conn_id": "pg",
        "selection": '{"exclude":[],"include":["s"]}', "options": OPTIONS, "event_log": (root / "events of r").as_uri(),
        "slot": "slot", "publication": "publication", "state": "running", "created_at": START,
        "captured": text(at(20)), "captured_at": START, "batches": 1, "system_id": "cluster-1", "lag_bytes": 0,
    }  # fmt: skip


def replicated(name: str, applied: LogPosition, flagged: str | None, writes: int) -> dict[str, Any]:
    return {
        "uid": f"u-{name}", "replication_uid": "u-r", "schema_name": "s", "table_name": name,
        "source_id": f"id of s.{name}", "columns": to_json(columns("id", "x")), "source_keys": '["id"]',
        "excluded": "[]", "mode": "merge", "state": "completed", "snapshot": text(at(10)), "applied": text(applied),
        "target": to_json(TableRef(f"lake.s_{name}", f"file:///lake/s_{name}", f"table of s.{name}")),
        "applied_at": START, "changed_until": text(at(20)), "writes": writes, "expected_rows": 3, "flagged": flagged,
        "gone": False, "selected": True, "problem": flagged,
    }  # fmt: skip


def write(name: str, number: int, state: str, answer: str | None, **more: Any) -> dict[str, Any]:
    ended = None if state == "open" else START
    return {
        "object_uid": f"u-{name}", "number": number, "kind": "write_down", "state": state, "run": DAG_RUN,
        "start_position": text(at(16)), "end_position": text(at(20)), "as_of": START, "opened_at": START,
        "lease_until": START - timedelta(hours=1), "deadline": START - timedelta(hours=1), "ended_at": ended,
        "closed_at": ended, "report": answer, **more,
    }  # fmt: skip


def act(name: str, said: str) -> dict[str, Any]:
    return {
        "replication_uid": "u-r", "object_uid": f"u-{name}", "act": said, "from_state": "completed",
        "to_state": "pending", "moved_at": START, "who": "ana", "why": "", "run": None,
    }  # fmt: skip


def rows(root: Path) -> dict[str, list[dict[str, Any]]]:
    """`a`: its write-down was left open; `b`: one stopped before an event; `c`: one is done, and a backfill open."""
    return {
        "tidemark_replication": [replication(root)],
        "tidemark_replicated_object": [
            replicated("a", at(16), None, 2), replicated("b", at(18), WHY, 1), replicated("c", at(20), None, 2),
        ],
        "tidemark_object_write": [
            write("a", 2, "open", None),
            write("b", 1, "done", report(at(18), WHY)),
            write("c", 1, "done", report(at(20), None)),
            write("c", 2, "failed", None, kind="backfill", start_position=None, end_position=None, as_of=None),
        ],
        "tidemark_replication_move": [act("b", "ask"), act("c", "complete")],
    }  # fmt: skip


@dataclass
class Earlier:
    """A database at revision 0010, with the tables that it had then."""

    engine: sa.Engine

    def __post_init__(self) -> None:
        with self.engine.begin() as connection:
            migrate.upgrade(connection, "0010")
        self.tables = sa.MetaData()
        self.tables.reflect(self.engine)

    def fill(self, root: Path) -> None:
        with self.engine.begin() as connection:
            for table, found in rows(root).items():
                for row in found:
                    connection.execute(self.tables.tables[table].insert().values(row))

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        with self.engine.connect() as connection:
            return {
                name: sorted(map(tuple, connection.execute(sa.select(self.tables.tables[name]))), key=repr)
                for name in rows(Path("/"))
            }


@pytest.fixture
def earlier(url: str, tmp_path: Path) -> Iterator[Earlier]:
    made = Earlier(sa.create_engine(url))
    made.fill(tmp_path)
    yield made
    made.engine.dispose()


@pytest.fixture
def world(earlier: Earlier, url: str, tmp_path: Path) -> World:
    store = ControlStore(url, embedded=False)
    store.migrate()
    world = World(store, tmp_path, name="beside")
    world.name = "r"
    return world


def events_of_a(world: World) -> None:
    """What the event log of `r` had already."""
    log = world.log(world.replication.event_log)
    batch = EventBatch("u-r", 1, at(16).commit, at(20).commit, "a", 2)
    log.append(batch, capture_app_id(world.store.store_id, "u-r"), [(17, "id of s.a"), (18, "id of s.a")])
    world.source.commits = [(17, "id of s.a"), (18, "id of s.a")]
    world.source.head = world.source.slot = 20


def test_options_are_those_that_were_chosen(world: World) -> None:
    wanted = ReplicationOptions(target="lake", invalid_values=InvalidValues.NULL, max_events=7)
    assert get_replication(world.store, "r").options == wanted
    stored = sa.text("SELECT options FROM tidemark_replication WHERE uid = 'u-r'")
    text = world.store.read(lambda connection: connection.execute(stored).scalar_one())
    renamed = json.loads(OPTIONS.replace("unfit_values", "invalid_values"))
    assert json.loads(text) == renamed
    assert renamed.items() <= json.loads(to_json(wanted)).items()


def test_an_object_that_was_flagged_needs_a_backfill_and_goes_on_after_it(world: World) -> None:
    assert (world.object("s.b").needs_backfill, world.apply("s.b").reason) == (WHY, WHY)
    events_of_a(world)
    objects.request_backfill(world.store, "r", ["s.b"], by=ME)
    assert world.backfill("s.b").report is not None
    assert (world.object("s.b").needs_backfill, world.object("s.b").state) == (None, ObjectState.COMPLETED)


def test_a_write_down_that_was_open_goes_on_under_its_number_and_with_its_bounds(world: World) -> None:
    events_of_a(world)
    done = world.apply("s.a").report
    assert done is not None
    assert (done.applied, done.events, world.object("s.a").applied) == (at(20), 2, at(20))
    assert (world.given, world.wrongs) == ([("u-a", 2, "apply")], [])


def test_closed_writes_keep_their_answers(world: World) -> None:
    closed = world.store.read(lambda connection: object_writes.lookup(connection, "u-b", 1))
    assert closed is not None
    assert (closed.kind, closed.state) == (WriteKind.APPLY, WriteState.DONE)
    answer = from_json(ApplyReport, closed.report or "")
    assert (answer.needs_backfill, answer.applied, answer.events) == (WHY, at(18), 2)
    newest = world.store.read(lambda connection: object_writes.newest(connection, "u-c", WriteKind.BACKFILL))
    assert newest is not None
    assert (newest.number, newest.kind) == (2, WriteKind.BACKFILL)


def test_the_history_has_the_words_of_now(world: World) -> None:
    assert {move.act for move in status.history(world.store, "r")} == {"request", "complete"}


def test_the_old_words_come_back_with_the_old_revision(earlier: Earlier) -> None:
    before = earlier.content()
    with earlier.engine.begin() as connection:
        migrate.upgrade(connection)
        command.downgrade(migrate.configuration(connection), "0010")
    after = earlier.content()
    assert after.keys() == before.keys()
    for name in ("tidemark_replicated_object", "tidemark_replication_move", "tidemark_replication"):
        assert after[name] == before[name]
    assert [_parsed(row) for row in after["tidemark_object_write"]] == [
        _parsed(row) for row in before["tidemark_object_write"]
    ]


def _parsed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(json.loads(one) if isinstance(one, str) and one.startswith("{") else one for one in row)
