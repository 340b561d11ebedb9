"""What is asked of a chunk's records is refused where it does not go together, before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.change_streams.model.change_streams import ChangeStream, ChangeStreamOptions, WatchedTable
from tidemark.change_streams.model.sinks import SinkKind
from tidemark.change_streams.planning.sinks import parse_sink
from tidemark.errors import InvalidArgument, MissingMergeKey
from tidemark.model.streams import TableRef

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def stream(*tables: str) -> ChangeStream:
    watched = tuple(
        WatchedTable(TableRef(name, f"file:///{name}", f"id-of-{name}"), ("id",), None, 0) for name in tables
    )
    return ChangeStream("u", "s", False, watched, ChangeStreamOptions(), NOW, "log", NOW, 0)


def test_a_merge_takes_the_only_table_and_its_keys() -> None:
    asked = parse_sink(stream("db.a"), write_as=" Merge ", target="t", keys="ID")
    assert (asked.kind, asked.table_id, asked.keys) == (SinkKind.MERGE, "id-of-db.a", ("ID",))
    assert parse_sink(stream("db.a", "db.b"), write_as="merge", target="t", table="DB.B").table_id == "id-of-db.b"
    one = stream("db.a")
    assert [parse_sink(one, write_as="merge", target="t", table=name).alone for name in (None, "db.a")] == [True, False]


def test_of_tables_whose_names_differ_by_case_alone_the_named_one_is_taken() -> None:
    both = stream("db.a", "db.A")
    for name in ("db.a", "db.A", "file:///db.A"):
        asked = parse_sink(both, write_as="append", target="t", table=name)
        assert asked.table_id == f"id-of-{name.removeprefix('file:///')}"
    with pytest.raises(InvalidArgument, match=r"it watches db\.a, db\.A"):
        parse_sink(both, write_as="append", target="t", table="DB.A")


def test_an_append_takes_the_records_of_all_tables_unless_one_is_named() -> None:
    assert parse_sink(stream("db.a"), write_as="append", target="t").table_id is None
    assert parse_sink(stream("db.a"), write_as="append", target="t", table="db.a").table_id == "id-of-db.a"


def test_a_table_that_is_not_watched_any_more_has_to_be_named() -> None:
    (once,) = stream("db.a").tables
    for now in (stream(), stream("db.b")):
        asked = parse_sink(now, write_as="merge", target="t", table="db.a", before=(once,))
        assert asked.table_id == "id-of-db.a"
    with pytest.raises(InvalidArgument, match="no table now"):
        parse_sink(stream(), write_as="merge", target="t", before=(once,))
    with pytest.raises(MissingMergeKey, match="by id alone"):
        parse_sink(stream(), write_as="merge", target="t", table="db.a", keys="v", before=(once,))


def test_a_function_has_no_target() -> None:
    asked = parse_sink(stream("db.a"), write_as="module:function")
    assert (asked.kind, asked.function, asked.target) == (SinkKind.FUNCTION, "module:function", None)


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"write_as": "upsert", "target": "t"}, InvalidArgument, "append, merge, or a function"),
        ({"write_as": "append"}, InvalidArgument, "needs a table"),
        ({"write_as": "m:f", "target": "t"}, InvalidArgument, "where it likes"),
        ({"write_as": "append", "target": "t", "keys": ["id"]}, InvalidArgument, "only a merge"),
        ({"write_as": "merge", "target": "t", "table": "db.c"}, InvalidArgument, "does not watch it"),
        ({"write_as": "merge", "target": "t"}, InvalidArgument, "several tables"),
        ({"write_as": "merge", "target": "t", "table": "db.a", "keys": ["v"]}, MissingMergeKey, "by id alone"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        parse_sink(stream("db.a", "db.b"), **asked)
