"""SHOW's filters, what a version is said to hold, and which tables a text reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tidemark.model.table_log import AddFile, Commit, DeletionVector, RemoveFile
from tidemark.streams.planning.backlog import change_records, operation_of
from tidemark.streams.planning.stream_sql.listing import listed, name_parts
from tidemark.streams.planning.stream_sql.mentions import tables_read

NAMES = ("b.orders", "ordinary", "a.x.orders", "Orders", "a.y.bills", "under_score")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["Orders", "ordinary", "under_score", "b.orders", "a.x.orders", "a.y.bills"]),
        ({"like": "ORD%"}, ["Orders", "ordinary", "b.orders", "a.x.orders"]),
        ({"like": "_rders"}, ["Orders", "b.orders", "a.x.orders"]),
        ({"like": r"%\_score"}, ["under_score"]),
        ({"like": "rder"}, []),
        ({"schema": "X"}, ["a.x.orders"]),
        ({"database": "a"}, ["a.x.orders", "a.y.bills"]),
        ({"database": "a", "schema": "y"}, ["a.y.bills"]),
        ({"starts_with": "ord"}, ["ordinary", "b.orders", "a.x.orders"]),
        ({"starts_with": "Ord"}, ["Orders"]),
        ({"limit": 2}, ["Orders", "ordinary"]),
        ({"limit": 1, "from_name": "Orders"}, ["ordinary"]),
        ({"limit": 9, "from_name": "ordinary"}, ["under_score"]),
    ],
)
def test_R131_streams_stand_by_database_schema_and_name_and_filters_look_at_the_name(filters, expected):
    assert list(listed(NAMES, **filters)) == expected


def test_R12_a_whole_name_has_up_to_three_parts():
    found = [name_parts(name) for name in ("s", "b.s", "a.b.s")]
    assert found == [(None, None, "s"), (None, "b", "s"), ("a", "b", "s")]


def commit(operation, adds=(), removes=(), **metrics):
    return Commit(
        version=1,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        operation=operation,
        adds=tuple(adds),
        removes=tuple(removes),
        metadata=None,
        protocol=None,
        row_id_high_water_mark=None,
        user_metadata=None,
        operation_metrics=metrics,
    )


def add(path, rows, deleted=0, data_change=True):
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return AddFile(path, 1, {}, 0, data_change, stats, vector(deleted), 0, 0)


def remove(path, rows, deleted=0, data_change=True):
    stats = None if rows is None else json.dumps({"numRecords": rows})
    return RemoveFile(path, data_change, 0, 1, {}, stats, vector(deleted), 0, 0)


def vector(deleted):
    return DeletionVector("i", "x", 1, deleted) if deleted else None


@pytest.mark.parametrize(
    ("made", "records", "operation"),
    [
        (commit("WRITE", [add("a", 5), add("b", 2)], numOutputRows="7"), 7, "INSERT"),
        (commit("WRITE", [add("a", 5)], [remove("b", 3)]), 8, "INSERT OVERWRITE"),
        (commit("DELETE", [add("a", 5, deleted=2)], [remove("a", 5)], numDeletedRows="2"), 2, "DELETE"),
        (commit("DELETE", [add("a", 5, deleted=3)], [remove("a", 5, deleted=1)]), 2, "DELETE"),
        (commit("TRUNCATE", (), [remove("a", 5)]), 5, "TRUNCATE"),
        (commit("UPDATE", [add("b", 100)], [remove("a", 100)], numUpdatedRows="3"), 6, "UPDATE"),
        (
            commit(
                "MERGE",
                [add("b", 9)],
                numTargetRowsInserted="1",
                numTargetRowsUpdated="2",
                numTargetRowsDeleted="4",
            ),
            9,
            "MERGE",
        ),
        (commit("OPTIMIZE", [add("c", 9, data_change=False)], [remove("a", 9, data_change=False)]), 0, "OPTIMIZE"),
        (commit("SET TBLPROPERTIES"), 0, "SET TBLPROPERTIES"),
        (commit(None, [add("a", None)]), 0, "UNKNOWN"),
    ],
)
def test_R125_a_version_holds_about_as_many_change_records_as_its_commit_says(made, records, operation):
    assert (change_records(made), operation_of(made)) == (records, operation)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("CREATE TABLE x USING delta AS SELECT * FROM a.s JOIN t", ("a.s", "t")),
        ("CREATE VIEW v AS SELECT * FROM s", ("s",)),
        ("CREATE TABLE x AS WITH s AS (SELECT 1 AS a) SELECT * FROM s", ()),
        ("CREATE TABLE s (id INT)", ()),
        ("DROP TABLE s", ()),
        ("NOT SQL AT ALL (", ()),
    ],
)
def test_a_text_reads_what_its_queries_name(text, read):
    assert tables_read(text) == read
