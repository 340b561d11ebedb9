"""A store of the release before has no table of objects: a migration fills it, and the moves go on from there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from tests.control.change_stream_model import ChangeStreamWorld, segment
from tests.control.kept_objects import drifted, rows_of
from tests.control.replication_model import Ends, World, found
from tidemark.change_streams.worker.definitions import suspend
from tidemark.change_streams.worker.groups import create_group, pause_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, plan_wave
from tidemark.control import migrate
from tidemark.control.store import ControlStore
from tidemark.errors import IncompatibleSchemaChange, SourceUnreachable, StoreNotMigrated
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import StreamMode, TableRef
from tidemark.replication.model.replication import Actor
from tidemark.replication.store import replicated_objects
from tidemark.replication.worker.objects import request_backfill
from tidemark.streams.store import health
from tidemark.streams.worker.statistics import count_failure
from tidemark.streams.worker.streams import create_stream, drop_stream, get_stream

BEFORE = "0010"
RUN = TransactionKey("shop_mirror", "scheduled__1", "deliver")
ERROR = IncompatibleSchemaChange(table="shop.t", start=0, end=1, problem="a column has another type")


@pytest.fixture
def earlier(url: str, tmp_path: Path) -> ControlStore:
    """A store at the revision before, with objects of every kind in many states."""
    store = ControlStore(url, embedded=False)
    store.migrate()
    _streams(store)
    _change_streams(store, tmp_path)
    _replication(store, tmp_path)
    store.write(lambda connection: command.downgrade(migrate.configuration(connection), BEFORE))
    return ControlStore(url, embedded=False)


def _streams(store: ControlStore) -> None:
    source = TableRef("shop.t", "file:///t", "id")
    for name in ("new", "Ünder", "broken", "unsaid", "gone"):
        create_stream(store, name=name, source=source, mode=StreamMode.STANDARD, at_version=3, who=str(RUN))
    create_stream(
        store, name="owes", source=source, mode=StreamMode.STANDARD, at_version=3, who="ana", initial_rows=True
    )
    uid = get_stream(store, "Ünder").uid
    store.write(lambda connection: health.count_delivery(connection, uid, rows=1, empty=False))
    count_failure(store, ["broken"], ERROR, run=RUN)
    count_failure(store, ["unsaid"], ValueError("of others"), run=TransactionKey("client", "1", "transaction"))
    drop_stream(store, "gone", "ana")


def _change_streams(store: ControlStore, root: Path) -> None:
    clock = store.clock
    world = ChangeStreamWorld(store, root / "watched")
    for name in ("failed", "paused", "fine"):
        create_group(store, "s", name, "earliest")
    pause_group(store, "s", "paused")
    world.batch(*(segment(one.token, world.clock.now, 1) for one in world.active()))
    planned = plan_wave(store, "s", "failed", run=str(RUN), max_chunks=10, max_rows=100).chunks
    assert len(planned) == 2
    for chunk in begin_chunks(store, planned, str(RUN)):
        chunk_failed(store, chunk, run=str(RUN), error="no space left")
    suspend(store, "s")
    shutil.rmtree(root / "watched")
    store.clock = clock


def _replication(store: ControlStore, root: Path) -> None:
    by = Actor(str(RUN), run=str(RUN))
    world = World(store, root / "replicated")
    world.start("s.a", "s.b", "s.c", "s.d")
    for name in ("s.a", "s.c", "s.d"):
        world.backfill(name, by=by)
    with pytest.raises(SourceUnreachable):
        world.backfill("s.b", Ends.ERROR, by=by)
    world.register(*(found(f"s.{name}") for name in "abcd"), found("s.x", unsupported="it is too wide"))
    stopped = {one.name.text: one for one in world.objects()}
    uids = stopped["s.a"].uid, stopped["s.c"].uid

    def meet(connection: sa.Connection) -> None:
        replicated_objects.set_problem(connection, uids[0], "the target is away")
        seen = replicated_objects.by_uid(connection, uids[1])
        replicated_objects.record_discovery(connection, seen, seen=seen.seen, held=(), notices=("a column is new",))

    store.write(meet)
    request_backfill(store, world.replication.name, ["s.b"], by=by)


def test_a_store_of_the_release_before_gets_a_row_for_each_object(earlier: ControlStore) -> None:
    with pytest.raises(StoreNotMigrated):
        rows_of(earlier)
    earlier.migrate()
    assert drifted(earlier) == []
    rows = rows_of(earlier)
    states = {name: (row["state"], row["severity"]) for name, row in rows.items() if not name.startswith("repl")}
    assert states == {
        "stream new": ("undelivered", "waiting"),
        "stream Ünder": ("delivering", "ok"),
        "stream broken": ("failing", "failed"),
        "stream unsaid": ("failing", "failed"),
        "stream owes": ("behind", "waiting"),
        "change_stream s": ("suspended", "waiting"),
        "consumer_group s/failed": ("failing", "failed"),
        "consumer_group s/paused": ("paused", "waiting"),
        "consumer_group s/fine": ("running", "ok"),
    }
    tables = {str(row["name"]).partition("/")[2]: row["severity"] for name, row in rows.items() if "_table " in name}
    assert tables == {"s.a": "failed", "s.b": "failed", "s.c": "warning", "s.d": "ok", "s.x": "warning"}
    assert rows["stream Ünder"]["folded_name"] == "ünder"


def test_owners_and_readers_of_problems_are_known_as_far_as_histories_go(earlier: ControlStore) -> None:
    earlier.migrate()
    rows = rows_of(earlier)
    owners = {name: row["owner_dag"] for name, row in rows.items()}
    assert owners["stream broken"] == owners["stream new"] == owners["consumer_group s/failed"] == RUN.dag_id
    assert owners["stream owes"] is owners["change_stream s"] is None
    assert rows["stream broken"]["problem_dags"] == rows["consumer_group s/failed"]["problem_dags"] == '["shop_mirror"]'
    assert rows["stream unsaid"]["problem_dags"] is None  # it was met in a notebook
    assert rows["stream broken"]["since"] is not None


def test_what_happens_after_the_migration_is_followed(earlier: ControlStore) -> None:
    earlier.migrate()
    drop_stream(earlier, "new", "ana")
    count_failure(earlier, ["Ünder"], ERROR, run=RUN)
    pause_group(earlier, "s", "fine")
    rows = rows_of(earlier)
    assert "stream new" not in rows
    assert rows["stream Ünder"]["state"] == "failing"
    assert rows["consumer_group s/fine"]["state"] == "paused"
    assert drifted(earlier) == []


def test_a_store_can_go_back_and_come_again(earlier: ControlStore) -> None:
    earlier.migrate()
    before = rows_of(earlier)

    def back_and_forth(connection: sa.Connection) -> None:
        command.downgrade(migrate.configuration(connection), BEFORE)
        migrate.upgrade(connection)

    earlier.write(back_and_forth)
    assert rows_of(earlier) == before
