"""The comment of a stream, and what waits behind one: the store and the log alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, StreamNotFound, StreamStale, VersionNotFound
from tidemark.model.streams import Stream, StreamMode, TableRef
from tidemark.streams.model.sources import table_source
from tidemark.streams.planning.points import Statement
from tidemark.streams.store import streams
from tidemark.streams.worker.backlog import stream_backlog, stream_table_timestamp
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.points import offsets_until
from tidemark.streams.worker.streams import comment_on_stream, create_stream, drop_stream, get_stream, stream_history


def made(store: ControlStore, table: SyntheticTable, version: int = 0) -> Stream:
    source = TableRef("s.orders", table.uri, table.table_id)
    return create_stream(
        store, name="Orders", source=source, mode=StreamMode.STANDARD, at_version=version, who="ann", comment="first"
    )


@pytest.fixture
def table(tmp_path: Path) -> SyntheticTable:
    return SyntheticTable(tmp_path / "orders")


def test_R4_a_comment_is_set_and_taken_away_and_nothing_else_changes(
    store: ControlStore, table: SyntheticTable
) -> None:
    stream = made(store, table)
    assert comment_on_stream(store, "oRDERS", "second").comment == "second"
    assert get_stream(store, "Orders").comment == "second"
    comment_on_stream(store, "Orders", None)
    after = get_stream(store, "Orders")
    assert (after.comment, after.uid, after.offset, after.anchor) == (None, stream.uid, stream.offset, stream.anchor)
    assert [move.why for move in stream_history(store, "Orders")] == ["created"]


def test_R4_a_dropped_stream_keeps_its_comment(store: ControlStore, table: SyntheticTable) -> None:
    stream = made(store, table)
    drop_stream(store, "Orders", "ann")
    with pytest.raises(StreamNotFound):
        comment_on_stream(store, "Orders", "late")
    assert store.write(lambda connection: streams.set_comment(connection, uid=stream.uid, comment="late")) is False
    assert store.read(lambda connection: streams.by_uid(connection, stream.uid)).comment == "first"


def test_R125_the_backlog_has_each_version_between_offset_and_now(store: ControlStore, table: SyntheticTable) -> None:
    table.append(3)
    made(store, table, version=1)
    assert stream_backlog(store, "Orders") == ()
    table.append(5)
    table.optimize()
    waiting = stream_backlog(store, "orders")
    assert [(one.table, one.version, one.change_records, one.operation) for one in waiting] == [
        ("s.orders", 2, 5, "INSERT"),
        ("s.orders", 3, 0, "OPTIMIZE"),
    ]
    assert waiting[0].timestamp < waiting[1].timestamp
    table.checkpoint()
    table.clean_up(before=3)
    with pytest.raises(StreamStale):
        stream_backlog(store, "Orders")


def test_R124_the_timestamp_is_that_of_the_version_at_the_offset(store: ControlStore, table: SyntheticTable) -> None:
    table.append()
    made(store, table, version=1)
    table.append()
    moment = datetime(2026, 3, 1, 12, 30, 15, 250000, tzinfo=UTC)
    table.set_time(0, moment.timestamp() - 60)
    table.set_time(1, moment.timestamp())
    assert stream_table_timestamp(store, "Orders") == 1772368215250000000
    table.recreate()
    with pytest.raises(VersionNotFound):
        stream_table_timestamp(store, "Orders")


def test_R8_a_statement_is_known_by_its_user_metadata_or_by_the_commits_own_id(
    store: ControlStore, table: SyntheticTable
) -> None:
    table.write("app", 1, "nightly", [])
    table.append()
    table.write("app", 2, "nightly", [])
    table.written[4] = []
    own = '{"commitInfo": {"operation": "WRITE", "txnId": "8e5d"}}\n'
    (table.log / f"{4:020d}.json").write_text(own)
    source = table_source(TableRef("orders", str(table.path), "id"))

    def version(statement: str, *, before: bool) -> int:
        (base,) = offsets_until(store, source, open_table, Statement(statement), before=before)
        return base.version

    assert (version("nightly", before=True), version("nightly", before=False)) == (0, 3)
    assert (version("8e5d", before=True), version("8e5d", before=False)) == (3, 4)
    with pytest.raises(InvalidArgument, match="names this statement"):
        version("nobody", before=False)
