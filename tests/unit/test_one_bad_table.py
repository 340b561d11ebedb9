"""A table that hangs, or whose storage refuses, stops no list, no description and no transaction on others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.lake.delta_directories import born, commit
from tidemark.cli._stream_facts import NOT_ANSWERED, rows_of
from tidemark.client.descriptions import look_and_describe_all
from tidemark.client.transaction import LakeTransaction
from tidemark.control.store import ControlStore
from tidemark.errors import StorageRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Stream, StreamMode, TableRef
from tidemark.streams.planning.staleness import Staleness
from tidemark.streams.worker import threads
from tidemark.streams.worker.streams import create_stream, list_streams

SHORT = timedelta(seconds=0.3)
KEY = TransactionKey("client", "run", "transaction")


class World:
    """Streams `a`, `bad` and `z` at version 0 of tables at version 2; `bad` is what each test makes of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = ControlStore(f"sqlite:///{root}/control.db", clock=lambda: datetime.now(UTC))
        self.store.migrate()
        self.bad: Callable[[], object] = lambda: None
        self.asked: list[str] = []
        for name in ("a", "bad", "z"):
            born(root / name, **{"delta.enableRowTracking": "true"})
            commit(root / name, 1)
            commit(root / name, 2)
            source = TableRef(f"shop.{name}", str(root / name), "id-1")
            create_stream(self.store, name=name, source=source, mode=StreamMode.STANDARD, at_version=0, who="ana")

    @property
    def streams(self) -> tuple[Stream, ...]:
        return list_streams(self.store)

    @property
    def context(self) -> Any:
        return SimpleNamespace(store=self.store, tables=self.tables)

    def tables(self, table: TableRef | str) -> DeltaLog:
        assert isinstance(table, TableRef)
        self.asked.append(table.name)
        if table.name == "shop.bad":
            self.bad()
        return DeltaLog.open(table.path)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def hung(world: World) -> Iterator[World]:
    release = threading.Event()
    world.bad = lambda: release.wait(60)
    yield world
    release.set()


@pytest.fixture
def refused(world: World) -> World:
    def refuse() -> None:
        raise StorageRefused(place="s3://lake/bad", problem="PermissionError")

    world.bad = refuse
    return world


def test_a_storage_that_refuses_one_table_is_said_in_the_description_of_its_stream(refused: World) -> None:
    a, bad, z = look_and_describe_all(refused.context, refused.streams)
    assert [(one.name, one.invalid_reason) for one in (a, z)] == [("a", "N/A"), ("z", "N/A")]
    assert "refused s3://lake/bad" in bad.invalid_reason
    assert (bad.table_name, bad.stale, bad.staleness, bad.stale_after) == ("shop.bad", False, Staleness.FRESH, None)


def test_an_error_of_the_system_is_said_in_the_description_of_its_stream(world: World) -> None:
    def broken() -> None:
        raise OSError("Input/output error")

    world.bad = broken
    assert [one.invalid_reason for one in look_and_describe_all(world.context, world.streams)] == [
        "N/A",
        "Input/output error",
        "N/A",
    ]


def test_a_table_that_hangs_keeps_no_other_stream_from_being_described(hung: World) -> None:
    a, bad, z = look_and_describe_all(hung.context, hung.streams, patience=SHORT)
    assert (a.invalid_reason, z.invalid_reason) == ("N/A", "N/A")
    assert "has not answered" in bad.invalid_reason
    assert (bad.stale, bad.table_name) == (False, "shop.bad")


def test_a_table_that_hangs_keeps_no_other_stream_from_the_list(hung: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "PATIENCE", SHORT)
    hook: Any = SimpleNamespace(open_table=hung.tables)
    rows = rows_of(hook, hung.streams, {})
    assert [(row["name"], row["head"], row["behind"]) for row in rows] == [
        ("a", 2, 2),
        ("bad", NOT_ANSWERED, None),
        ("z", 2, 2),
    ]
    assert rows[1]["state"] == "unknown"


def test_a_transaction_asks_only_the_tables_of_the_streams_that_it_names(hung: World) -> None:
    opened = LakeTransaction(hung.context, KEY)
    assert hung.asked == []
    assert opened._window("A").end == 2
    assert set(hung.asked) == {"shop.a"}


def test_R21_a_stream_named_late_ends_at_the_start_of_the_transaction(world: World) -> None:
    opened = LakeTransaction(world.context, KEY)
    commit(world.root / "a", 3, at=datetime.now(UTC) + timedelta(milliseconds=5))
    commit(world.root / "z", 3, at=datetime.now(UTC) - timedelta(days=1))
    time.sleep(0.01)
    assert (opened._window("a").end, opened._window("z").end) == (2, 3)
    commit(world.root / "z", 4)
    assert opened._window("z").end == 3
