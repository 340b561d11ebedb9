"""Statements of clustering, as values; wrong ones are refused with what to do."""

from __future__ import annotations

import pytest

from tidemark.clustering.planning import statements as said
from tidemark.clustering.planning.conditions import bounds_in
from tidemark.clustering.planning.sql import parse_clustering_sql
from tidemark.errors import ClusteringKeyRefused, NotYetSupported, SqlCompilationError
from tidemark.model.file_ranges import Bound


@pytest.mark.quick
@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        ("ALTER TABLE a.b CLUSTER BY (c1, `c 2`);", said.ClusterBy, {"columns": ("c1", "c 2")}),
        ("alter table t cluster  by linear(s.a)", said.ClusterBy, {"columns": ("s.a",)}),
        ("ALTER TABLE delta.`/a b` CLUSTER BY (x)", said.ClusterBy, {"columns": ("x",)}),
        ("ALTER TABLE t CLUSTER BY NONE", said.DropKey, {}),
        ("ALTER TABLE t DROP CLUSTERING KEY", said.DropKey, {}),
        ("-- now\nALTER TABLE t SUSPEND RECLUSTER", said.SuspendRecluster, {}),
        ("ALTER TABLE t RESUME RECLUSTER", said.ResumeRecluster, {}),
        ("ALTER TABLE t RECLUSTER", said.ReclusterNow, {"max_size": None, "where": None}),
        ("ALTER TABLE t RECLUSTER MAX_SIZE = 10 WHERE a > 5;", said.ReclusterNow, {"max_size": 10, "where": "a > 5"}),
        ("SELECT SYSTEM$CLUSTERING_INFORMATION('a.b', '(c1, c2)')", said.ClusteringCall, {"columns": ("c1", "c2")}),
        ("SELECT SYSTEM$CLUSTERING_INFORMATION('t', 5)", said.ClusteringCall, {"columns": (), "errors": 5}),
        ("select system$clustering_depth('t', 'c') as d", said.ClusteringCall, {"columns": ("c",), "title": "d"}),
    ],
)
def test_statements_are_read(text: str, kind: type, facts: dict[str, object]) -> None:
    found = parse_clustering_sql(text)
    assert isinstance(found, kind)
    assert {name: getattr(found, name) for name in facts} == facts


@pytest.mark.parametrize(
    "text",
    ["ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t ALTER COLUMN resume TYPE INT", "SELECT 1", "ALTER VIEW v AS x"],
)
def test_other_statements_are_left_to_others(text: str) -> None:
    assert parse_clustering_sql(text) is None


@pytest.mark.parametrize(
    ("element", "column"),
    [
        ("to_date(ts)", "to_date_ts DATE"),
        ("ts::date", "ts_date DATE"),
        ("CAST(a AS INT)", "cast_a_as_int INT"),
        ("substring(name, 1, 5)", "substring_name STRING"),
        ("a + 1", "a BIGINT"),
    ],
)
def test_an_expression_is_refused_with_the_column_to_add(element: str, column: str) -> None:
    with pytest.raises(ClusteringKeyRefused) as refused:
        parse_clustering_sql(f"ALTER TABLE shop.t CLUSTER BY (k, {element})")
    assert f"shop.t cannot be clustered by {element}: " in str(refused.value)
    assert f"ALTER TABLE shop.t ADD COLUMNS ({column})" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ALTER TABLE t CLUSTER BY ()", SqlCompilationError),
        ("ALTER TABLE t CLUSTER BY AUTO", NotYetSupported),
        ("ALTER TABLE t SUSPEND", SqlCompilationError),
        ("ALTER TABLE t RECLUSTER MAX_SIZE = x", SqlCompilationError),
        ("ALTER TABLE t RECLUSTER WHERE a LIKE 'x'", SqlCompilationError),
        ("SELECT SYSTEM$CLUSTERING_DEPTH('t') FROM x", NotYetSupported),
        ("SELECT SYSTEM$CLUSTERING_INFORMATION(t)", SqlCompilationError),
    ],
)
def test_wrong_statements_are_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_clustering_sql(text)


def test_conditions_are_bounds_of_columns() -> None:
    assert bounds_in("k >= 5 AND k < 9") == (Bound("k", 5, 9),)
    assert bounds_in("k = -5") == (Bound("k", -5, -5),)
    assert bounds_in("day BETWEEN DATE '2026-01-01' AND '2026-02-01' AND x <= 1.5") == (
        Bound("day", "2026-01-01", "2026-02-01"),
        Bound("x", None, 1.5),
    )
    assert bounds_in("ts > '2026-01-01 10:00:00'") == (Bound("ts", "2026-01-01T10:00:00Z", None),)
    with pytest.raises(SqlCompilationError, match="give one least and one greatest value of K"):
        bounds_in("k > 1 AND K > 2")


@pytest.mark.parametrize(
    "text",
    [
        f"ALTER TABLE {'long_name' * 20} ADD COLUMNS (x INT)",
        f"ALTER TABLE {'`a b`.' * 20}c ADD COLUMNS (x INT)",
        f"{'/* a note */ ' * 60}INSERT INTO t SELECT 1",
        f"{'-- a note' + chr(10)} {'/* one */' * 60} /* the last",
    ],
)
def test_long_names_and_many_comments_are_read_at_once(text: str) -> None:
    """A pattern that could read them in several ways would try each, and take years."""
    assert parse_clustering_sql(text) is None
