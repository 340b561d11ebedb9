"""Tables with channels among all objects: registered by tasks, judged by the records in their logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born, commit
from tidemark.channels.planning.names import domain_of
from tidemark.channels.planning.records import opened, record_text, rewound
from tidemark.channels.worker.landing_tables import end_missing_tables, note_landing_table
from tidemark.channels.worker.tables import channels_of
from tidemark.control.object_kinds import Severity
from tidemark.control.object_list import ObjectsWish, ShownObject
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.streams.worker.object_states import describe_object, list_objects
from tidemark.streams.worker.sources import open_table

RUN = "land/scheduled__1/logs/-1"


@pytest.fixture
def table(tmp_path: Path) -> TableRef:
    born(tmp_path)
    return TableRef("db.orders", f"file://{tmp_path}", "id-1")


def committed(table: TableRef, version: int, key: str, *, ago: timedelta = timedelta(), lost: bool = False) -> None:
    record = opened(None, table.table_id, by="writer", token="1", now=datetime.now(UTC) - ago)
    if lost:
        record = rewound(record, None, reason="version 9 restored the table.", is_known=False)
    domain = {"domain": domain_of(key), "configuration": record_text(record), "removed": False}
    commit(Path(table.path.removeprefix("file://")), version, {"domainMetadata": domain})


def noted(store: ControlStore, table: TableRef, by: str = RUN) -> None:
    note_landing_table(store, table, channels_of(DeltaLog.open(table.path), table.name), by=by)


def shown(store: ControlStore) -> ShownObject:
    (only,) = list_objects(store, open_table, ObjectsWish(kind="landing_table"))
    return only


def test_a_table_is_listed_as_long_as_it_has_channels(copied_store: ControlStore, table: TableRef) -> None:
    noted(copied_store, table)
    assert list_objects(copied_store, open_table, ObjectsWish()) == ()
    committed(table, 1, "A", ago=timedelta(minutes=5))
    committed(table, 2, "B")
    for _ in range(2):
        noted(copied_store, table)
    only = shown(copied_store)
    assert (only.name, only.state, only.severity, only.owner_dag) == ("db.orders", "landing", Severity.OK, "land")
    assert (only.lag_amount, only.lag_unit, (only.lag_seconds or 0) < 60) == (2, "channels", True)
    for version, key in ((3, "A"), (4, "B")):
        domain = {"domain": domain_of(key), "configuration": "", "removed": True}
        commit(Path(table.path.removeprefix("file://")), version, {"domainMetadata": domain})
    assert shown(copied_store).state == "without channels"
    for _ in range(2):
        noted(copied_store, table)
    assert list_objects(copied_store, open_table, ObjectsWish()) == ()
    committed(table, 5, "A")
    noted(copied_store, table)
    assert shown(copied_store).state == "landing"


def test_a_renamed_table_keeps_its_place_under_its_new_name(copied_store: ControlStore, table: TableRef) -> None:
    committed(table, 1, "A")
    noted(copied_store, table)
    noted(copied_store, TableRef("db.renamed", table.path, table.table_id), by="notebook")
    found = describe_object(copied_store, open_table, "landing_table", "DB.RENAMED")
    assert (found.uid, found.owner_dag) == ("id-1", "land")


def test_a_table_that_is_dropped_or_created_again_is_listed_no_more(
    copied_store: ControlStore, table: TableRef, tmp_path: Path
) -> None:
    committed(table, 1, "A")
    noted(copied_store, table)
    assert end_missing_tables(copied_store, open_table) == ()
    place = Path(table.path.removeprefix("file://"))
    (place / "_delta_log").rename(tmp_path.parent / f"{tmp_path.name} away")
    assert shown(copied_store).state == "unreadable"
    assert [end_missing_tables(copied_store, open_table) for _ in range(2)] == [("db.orders",), ()]
    (tmp_path.parent / f"{tmp_path.name} away").rename(place / "_delta_log")
    noted(copied_store, table)
    assert shown(copied_store).state == "landing"
    noted(copied_store, TableRef("db.orders", table.path, "id-2"))
    assert end_missing_tables(copied_store, open_table) == ("db.orders",)


def test_silent_channels_are_a_warning_and_a_lost_token_or_log_a_failure(
    copied_store: ControlStore, table: TableRef
) -> None:
    committed(table, 1, "A", ago=timedelta(days=24))
    committed(table, 2, "B")
    noted(copied_store, table)
    silent = shown(copied_store)
    assert (silent.state, silent.severity) == ("silent", Severity.WARNING)
    assert silent.trouble == "channels that have committed nothing for 23 days: A"
    committed(table, 3, "B", lost=True)
    lost = shown(copied_store)
    assert (lost.state, lost.severity) == ("token lost", Severity.FAILED)
    assert "B: version 9 restored the table." in str(lost.trouble)
    (Path(table.path.removeprefix("file://")) / "_delta_log" / f"{3:020}.json").write_text("half of a li")
    assert (shown(copied_store).state, shown(copied_store).severity) == ("unreadable", Severity.FAILED)
