"""Streams are created, moved past changes and dropped from the command line, without a DAG and without Spark."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import Said, run_airflow
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.world import World
from tidemark.control.store import ControlStore
from tidemark.model.streams import StreamMode
from tidemark.streams.worker.streams import get_stream, list_streams, stream_history

pytestmark = pytest.mark.airflow


@pytest.fixture
def orders(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyntheticTable:
    """`shop.orders` at version 3, in a lake and a store of its own."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    table = SyntheticTable(tmp_path / "lake/shop/orders")
    for _ in range(3):
        table.append()
    return table


@pytest.fixture
def store(tmp_path: Path) -> ControlStore:
    return ControlStore(f"sqlite:///{tmp_path}/control.db")


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", "streams", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark(*arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def refused(*arguments: str) -> str:
    said = tidemark(*arguments)
    assert (said.returncode, said.stdout, "Traceback" in said.stderr) == (1, "", False)
    return said.stderr


def test_a_stream_is_created_where_it_was_asked_for_and_kept_by_a_second_run(
    orders: SyntheticTable, store: ControlStore
) -> None:
    create = ("create", "order_changes", "--on", "shop.orders", "--mode", "append_only", "--at", "1")
    (told,) = rows(*create, "--dry-run")
    assert list_streams(store) == ()
    (made,) = rows(*create, "--comment", "for the mart")
    assert {**made, "done": "False"} == told
    assert (made["created"], made["version"], made["done"]) == ("True", "1", "True")
    stream = get_stream(store, "order_changes")
    assert (stream.mode, stream.comment, stream.source.name) == (StreamMode.APPEND_ONLY, "for the mart", "shop.orders")
    (kept,) = rows("create", "ORDER_CHANGES", "--on", "shop.orders", "--mode", "append_only")
    assert (kept["created"], kept["version"]) == ("False", "1")
    assert get_stream(store, "order_changes") == stream
    assert "StreamExists" in refused("create", "order_changes", "--on", "shop.orders")
    (anew,) = rows("create", "order_changes", "--on", "shop.orders", "--or-replace")
    assert (anew["created"], anew["version"], anew["mode"]) == ("True", "3", "standard")


def test_keys_stand_in_for_row_tracking(tmp_path: Path, orders: SyntheticTable, store: ControlStore) -> None:
    SyntheticTable(tmp_path / "lake/shop/loads", {"delta.enableRowTracking": "false"})
    assert "RowTrackingDisabled" in refused("create", "loads", "--on", "shop.loads")
    rows("create", "loads", "--on", "shop.loads", "--key", "id", "--show-initial-rows")
    assert (get_stream(store, "loads").keys, get_stream(store, "loads").initial_rows_pending) == (("id",), True)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--on", "shop.nowhere"), "TableNotFound"),
        (("--on", "shop.orders", "--at", "yesterday"), "InvalidArgument"),
        (("--on", "shop.orders", "--at", "9"), "VersionNotFound"),
        (("--on", "shop.orders", "--key", "nowhere"), "InvalidArgument"),
        (("--on", "shop.orders", "--mode", "insert_only"), "ExternalTableNotFound"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_what_cannot_have_a_stream_is_named_and_nothing_is_made(
    orders: SyntheticTable, store: ControlStore, arguments: tuple[str, ...], error: str
) -> None:
    for more in ((), ("--dry-run",)):
        assert error in refused("create", "s", *arguments, *more)
    assert list_streams(store) == ()


def test_changes_are_passed_over_with_a_reason_and_never_back(orders: SyntheticTable, store: ControlStore) -> None:
    rows("create", "s", "--on", "shop.orders", "--at", "0")
    (told,) = rows("advance", "s", "--to", "2", "--why", "a test load", "--dry-run")
    assert get_stream(store, "s").offset.version == 0
    (moved,) = rows("advance", "s", "--to", "2", "--why", "a test load")
    assert (moved["before"], moved["after"], {**moved, "done": "False"}) == ("0", "2", told)
    assert rows("advance", "s", "--to", "2", "--why", "again")[0]["before"] == "2"
    assert rows("advance", "s", "--to", datetime.now(UTC).isoformat(), "--why", "until now")[0]["after"] == "3"
    assert "never moves back" in refused("advance", "s", "--to", "1", "--why", "back")
    assert "VersionNotFound" in refused("advance", "s", "--to", "99", "--why", "on")
    assert "InvalidArgument" in refused("advance", "s", "--to", "now", "--why", " ")
    assert "a test load" in [move.why for move in stream_history(store, "s")]


def test_all_unread_changes_are_passed_over_only_once_that_is_confirmed(
    orders: SyntheticTable, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows("create", "s", "--on", "shop.orders", "--at", "0")
    to_now = ("advance", "s", "--to", "now", "--why", "a test load")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    said = refused(*to_now)
    assert "Nothing was done" in said
    assert "passes over its unread changes of versions 1 to 3 of shop.orders" in said
    assert get_stream(store, "s").offset.version == 0
    assert rows(*to_now, "--yes")[0]["after"] == "3"
    assert rows(*to_now)[0]["before"] == "3"


def test_a_stream_is_dropped_once_it_is_confirmed(
    orders: SyntheticTable, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows("create", "s", "--on", "shop.orders")
    assert rows("drop", "s", "--dry-run")[0]["done"] == "False"
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert "Nothing was done" in refused("drop", "s")
    assert [one.name for one in list_streams(store)] == ["s"]
    monkeypatch.setattr("sys.stdin", io.StringIO("YES\n"))
    assert tidemark("drop", "s").returncode == 0
    assert list_streams(store) == ()
    assert "StreamNotFound" in refused("drop", "s", "--yes")
    assert rows("drop", "s", "--if-exists") == []


def test_a_stream_that_a_transaction_holds_is_neither_moved_nor_dropped(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", world.url)
    world.clock.now = datetime.now(UTC)
    world.stream()
    world.source.append()
    world.open("one")
    for more in ((), ("--dry-run",)):
        assert "TransactionOpen" in refused("advance", "s", "--to", "now", "--why", "on", *more)
        assert "TransactionOpen" in refused("drop", "s", "--if-exists", *more)
