"""Replications are paused, resumed, recovered, backfilled and dropped from the command line, each act once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import Said, run_airflow
from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.control.change_stream_model import Clock
from tests.control.replication_model import ME, Ends, WorkerDied, World, at, found
from tests.postgresql import PostgresServer
from tidemark.control.object_acts import newest_acts
from tidemark.control.store import ControlStore
from tidemark.hooks.replication import event_log_path, source_of
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import ObjectState, ReplicationOptions, ReplicationState, Selection
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import create_replication, get_replication, list_replications
from tidemark.replication.worker.objects import objects_of
from tidemark.replication.worker.preparing import prepare
from tidemark.replication.worker.status import history

pytestmark = pytest.mark.airflow
S, O = ReplicationState, ObjectState  # noqa: E741
Answer = Callable[[str], None]


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", "replications", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark(*arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def refused(*arguments: str) -> str:
    said = tidemark(*arguments)
    assert (said.returncode, said.stdout) == (1, "")
    assert "Traceback" not in said.stderr
    return said.stderr


@pytest.fixture
def world(airflow_home: Path, use: Callable[[str], None], tmp_path: Path) -> World:
    """`s.orders` has its copy, `s.items` waits for one, and `s.odd` cannot be replicated. Its clock is today's."""
    use(f"sqlite:///{tmp_path}/control.db")
    world = World(
        ControlStore(f"sqlite:///{tmp_path}/control.db"), tmp_path / "event_logs", clock=Clock(datetime.now(UTC))
    )
    world.start("s.orders", "s.items")
    world.register(found("s.orders"), found("s.items"), found("s.odd", unsupported="row security hides rows"))
    world.capture()
    world.backfill("s.orders")
    return world


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """What a person types."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def states(world: World) -> dict[str, ObjectState]:
    return {one.name.text: one.state for one in world.objects()}


def test_a_replication_is_paused_and_resumed_and_a_second_run_changes_nothing(world: World) -> None:
    (paused,) = rows("pause", "R", "--why", "holidays")
    assert (paused["before"], paused["after"], paused["done"]) == ("running", "paused", "True")
    (again,) = rows("pause", "r")
    assert (again["before"], again["after"]) == ("paused", "paused")
    for before in ("paused", "running"):
        (resumed,) = rows("resume", "r")
        assert (resumed["before"], resumed["after"]) == (before, "running")
    moves = [(move.act, move.by.why) for move in history(world.store, "r")][:3]
    assert moves == [("resume", ""), ("drained", "holidays"), ("pause", "holidays")]


def test_what_was_captured_is_applied_before_a_pause_unless_it_is_to_be_at_once(world: World) -> None:
    world.source.commit("id of s.orders")
    world.capture()
    assert [rows("pause", "r")[0]["after"] for _ in range(2)] == ["draining", "draining"]
    assert rows("pause", "r", "--at-once")[0]["after"] == "paused"


@pytest.mark.parametrize(
    "act",
    [("pause",), ("pause", "--at-once"), ("backfill", "s.orders"), ("drop", "--without-source")],
    ids=lambda act: " ".join(act),
)
def test_a_rehearsed_act_tells_what_it_would_do_and_does_nothing(world: World, act: tuple[str, ...]) -> None:
    name, *more = act
    kept = (world.replication, world.objects(), history(world.store, "r"))
    (told,) = rows(name, "r", *more, "--dry-run")
    assert told["done"] == "False"
    assert told["before"] != told["after"]
    assert (world.replication, world.objects(), history(world.store, "r")) == kept
    (done,) = rows(name, "r", *more, *(["--yes"] if name == "drop" else []))
    assert {**done, "done": "False"} == told


def test_an_act_that_the_state_refuses_is_named_rehearsed_or_not(world: World) -> None:
    world.create("idle")
    for more in ((), ("--dry-run",)):
        assert "ReplicationNotFound" in refused("pause", "nothing", *more)
        assert "it has not been started" in refused("pause", "idle", *more)
        assert "it has not been started" in refused("resume", "idle", *more)


def test_a_backfill_is_asked_for_by_names_and_the_next_run_does_it(world: World) -> None:
    for before in ("completed", "pending"):
        (asked,) = rows("backfill", "r", "s.orders", "--why", "a column was forgotten")
        assert (asked["object"], asked["before"], asked["after"]) == ("s.orders", before, "pending")
    assert history(world.store, "r")[0].by.why == "a column was forgotten"
    assert world.backfill("s.orders").report is not None


def test_all_that_can_be_backfilled_is_asked_for_and_the_rest_is_named(world: World) -> None:
    said = tidemark("backfill", "r", "--all", "--output", "json")
    assert {one["object"]: one["after"] for one in json.loads(said.stdout)} == {
        "s.items": "pending",
        "s.orders": "pending",
    }
    assert "s.odd is left out: row security hides rows" in said.stderr
    assert states(world) == {"s.items": O.PENDING, "s.orders": O.PENDING, "s.odd": O.UNSUPPORTED}


def test_a_backfill_is_stopped_and_asked_for_again(world: World) -> None:
    stop = ("backfill", "r", "s.items", "--action", "stop")
    assert [(one["before"], one["after"]) for one in (*rows(*stop), *rows(*stop))] == [
        ("pending", "stopped"),
        ("stopped", "stopped"),
    ]
    assert rows("backfill", "r", "s.items", "--action", "restart")[0]["after"] == "pending"


def test_nothing_is_asked_for_where_one_table_cannot_be_or_none_is_named(world: World) -> None:
    kept = states(world)
    assert "ObjectNotFound" in refused("backfill", "r", "s.orders", "s.nowhere")
    assert "ObjectNotReplicable" in refused("backfill", "r", "s.orders", "s.odd")
    assert "name tables, or give --all" in refused("backfill", "r")
    assert "name tables, or give --all" in refused("backfill", "r", "s.orders", "--all")
    assert states(world) == kept


@pytest.mark.parametrize("said", ["", "n\n", "no\n", "shop\n"])
def test_a_drop_that_nobody_confirms_drops_nothing(world: World, answer: Answer, said: str) -> None:
    answer(said)
    told = refused("drop", "r", "--without-source")
    assert "Its targets stay. [y/N]" in told
    assert "--yes" in told
    assert world.replication.state is S.RUNNING


def test_a_drop_that_is_confirmed_is_done_once(world: World, answer: Answer) -> None:
    log = Path(world.replication.event_log.removeprefix("file://"))
    world.source.commit("id of s.orders")
    world.capture()
    assert log.exists()
    answer("y\n")
    assert tidemark("drop", "r", "--without-source").returncode == 0
    assert (list_replications(world.store), log.exists()) == ((), False)
    assert rows("drop", "r", "--if-exists", "--yes") == []
    assert "ReplicationNotFound" in refused("drop", "r", "--yes")


def test_a_drop_waits_for_jobs_that_may_be_alive_and_asks_nobody_before(world: World) -> None:
    with pytest.raises(WorkerDied):
        world.backfill("s.items", Ends.WORKER_DIED_BEFORE)
    for more in ((), ("--dry-run",)):
        told = refused("drop", "r", "--without-source", *more)
        assert "may run until" in told
        assert "[y/N]" not in told
    (dropped,) = rows("drop", "r", "--without-source", "--force", "--yes")
    assert (dropped["after"], dropped["done"]) == ("dropped", "True")


@pytest.fixture
def shop(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ReplicatedShop:
    """A shop's database, replicated up to its slot, with nothing copied yet."""
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=5)
    store = shop.hook.open_store()
    create_replication(
        store,
        name=REPLICATION,
        kind=SourceKind.POSTGRESQL,
        source_conn_id=CONN_ID,
        selection=Selection(include=("shop",)),
        options=ReplicationOptions(target="mirror", backfill=False),
        event_log=event_log_path(shop.hook),
        by=ME,
    )
    prepare(store, REPLICATION, source=source_of(get_replication(store, REPLICATION)), targets=_target, by=ME)
    return shop


def _target(name: Any) -> Any:
    from tidemark.model.streams import TableRef

    return TableRef(f"mirror.{name.folded}", f"file:///mirror/{name.folded}", "")


def test_a_recovery_is_told_in_advance_then_done_once_for_a_position(shop: ReplicatedShop) -> None:
    store = shop.hook.open_store()
    assert "it is running" in refused("recover", REPLICATION, "--from", "now")
    lifecycle.failed(store, REPLICATION, error="the network went away", by=ME)
    assert "'now' would discard the slot" in refused("recover", REPLICATION, "--from", "now")
    assert "looks like 16/B374D848" in refused("recover", REPLICATION, "--from", "yesterday")
    assert "ObjectNotFound" in refused("recover", REPLICATION, "--from", "now", "--keep", "shop.nowhere")
    ((place,),) = shop.sql("SELECT pg_current_wal_lsn()")
    recover = ("recover", REPLICATION, "--from", str(place), "--keep", "shop.visits", "--why", "looked at it")
    (told,) = rows(*recover, "--dry-run")
    assert get_replication(store, REPLICATION).state is S.FAILED
    (done,) = rows(*recover)
    assert {**done, "done": "False"} == told
    assert (done["after"], done["captured"]) == ("running", place)
    assert done["needs_backfill"] == "shop.customers, shop.order_items, shop.orders"
    (again,) = rows(*recover)
    assert {**again, "before": "failed"} == done
    (kept,) = store.read(lambda connection: newest_acts(connection, kind="replication", uid=None, limit=10))
    assert (kept.act, kept.name, kept.why, kept.by_command) == ("recover", REPLICATION, "looked at it", True)
    assert kept.values == {"position": str(place), "keep": ["shop.visits"]}
    kept = {one.name.text: one.needs_backfill for one in objects_of(store, REPLICATION)}
    assert [name for name, flag in kept.items() if flag is None] == ["shop.visits"]
    assert get_replication(store, REPLICATION).captured != at(0)


def test_a_recovery_from_now_makes_a_new_slot_for_one_that_failed_for_good(
    shop: ReplicatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shop.hook.open_store()
    lifecycle.failed_permanently(store, REPLICATION, error="the slot is lost", by=ME)
    shop.sql(f"SELECT pg_drop_replication_slot('{get_replication(store, REPLICATION).slot}')")
    (told,) = rows("recover", REPLICATION, "--from", "now", "--dry-run")
    assert (told["before"], told["after"], shop.in_source()[0]) == ("failed_permanently", "running", [])
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    said = refused("recover", REPLICATION, "--from", "now")
    assert "not captured are lost" in said
    assert "Nothing was done" in said
    assert get_replication(store, REPLICATION).state is S.FAILED_PERMANENTLY
    rows("recover", REPLICATION, "--from", "now", "--yes")
    assert shop.in_source()[0] == [get_replication(store, REPLICATION).slot]


def test_a_drop_takes_slot_and_publication_away_and_a_source_that_is_away_stops_it(
    shop: ReplicatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    connection = json.loads(os.environ["AIRFLOW_CONN_SHOP_DATABASE"])
    with monkeypatch.context() as away:
        away.setenv("AIRFLOW_CONN_SHOP_DATABASE", json.dumps({**connection, "port": 1}))
        assert "SourceUnreachable" in refused("drop", REPLICATION, "--yes")
        away.delenv("AIRFLOW_CONN_SHOP_DATABASE")
        assert "`shop_database` isn't defined" in refused("drop", REPLICATION, "--yes")
    (dropped,) = rows("drop", REPLICATION, "--yes")
    assert (dropped["slot"].startswith("tidemark_shop"), shop.in_source()) == (True, ([], []))
    assert list_replications(shop.hook.open_store()) == ()


def test_event_files_are_forgotten_after_a_question_and_where_none_are_known_without_spark(
    world: World, answer: Answer, tmp_path: Path
) -> None:
    answer("no")
    assert "nobody confirmed" in refused("forget-files", "r", f"{tmp_path}/files")
    for more in (("--dry-run",), ("--yes",)):
        (row,) = rows("forget-files", "r", f"{tmp_path}/files", *more)
        assert (row["target"], row["written"], row["done"]) == (f"file://{tmp_path}/files", None, "False")
