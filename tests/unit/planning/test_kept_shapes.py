"""The shape of a query's kept table, and the reason why changed groups are computed from the base."""

from __future__ import annotations

import json
import re

import pytest
import sqlglot
from sqlglot import exp

from tests.unit.planning.tpch_queries import Q1, Q3, Q5, Q6, Q10, Q12, Q14, TPCH_COLUMNS
from tidemark.changes.planning.views.expand import expand
from tidemark.changes.planning.views.text import parse_view
from tidemark.errors import ViewRefused
from tidemark.materialized.driver.taken_names import is_over
from tidemark.materialized.model.shapes import KeptShape, Shape
from tidemark.materialized.planning.reading import as_stored_query, as_stored_view, over_kept
from tidemark.materialized.planning.runtime_values import refused_values, runtime_value
from tidemark.materialized.planning.shape import plain_shape, shape_of
from tidemark.model.views import StoredTable, StoredView, ViewColumn, ViewQuery

SMALL = {"k": "integer", "n": "long", "v": "string", "d": "decimal(20,2)", "f": "double", "w": "float"}
TABLES = {**TPCH_COLUMNS, "t": SMALL, "u": {"k": "integer", "x": "integer"}, "s": {**SMALL, "c": "struct"}}
PATHS = {f"delta.`/{name}`": columns for name, columns in TABLES.items()}


def resolved(parts: tuple[str, ...], _: tuple[str, ...]) -> StoredTable:
    return StoredTable(f"delta.`/{parts[-1]}`" if len(parts) == 1 else f"delta.`{parts[-1]}`")


def expanded(text: str) -> ViewQuery:
    """The query of a text, with names and types that `Spark` gives."""
    names = [name for name, _ in columns_of(sqlglot.parse_one(text, dialect="databricks"), ())]
    view = StoredView("v", text, ("c", "s"), tuple(ViewColumn(name, name) for name in names))
    query = expand(view, "", resolved, beyond=True, is_builtin=lambda _: True, unnamed=True)
    return ViewQuery(**{**vars(query), "schema_json": schema(columns_of(sqlglot.parse_one(text), ()))})


def shape(text: str, *, drifting: bool = False, sums: bool = True) -> KeptShape:
    query = expanded(text)

    def analyse(asked: str) -> str:
        return schema(columns_of(sqlglot.parse_one(asked, dialect="databricks"), query.bases))

    return shape_of(query, analyse=analyse, sums=sums, drifting=drifting)


def schema(columns: list[tuple[str, str]]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


def columns_of(query: exp.Expression, bases: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names and types of a query's columns, for the expressions of these tests."""
    if isinstance(query, exp.SetOperation):
        return columns_of(query.this, bases)
    if isinstance(query, exp.Subquery):
        found = columns_of(query.this, bases)
        given = query.args["alias"].columns if query.args.get("alias") else []
        return [(new.name, kind) for new, (_, kind) in zip(given, found, strict=True)] if given else found
    if isinstance(query, exp.Table):
        name = query.name
        number = re.fullmatch(r"tidemark_base_(\d+)", name)
        ctes = {cte.alias: cte for clause in query.root().find_all(exp.With) for cte in clause.expressions}
        if name in ctes:
            return columns_of(ctes[name].this, bases)
        return list((PATHS[bases[int(number[1])]] if number else TABLES[name]).items())
    assert isinstance(query, exp.Select)
    joins = [join.this for join in query.args.get("joins") or ()]
    known = dict(pair for source in [query.args["from_"].this, *joins] for pair in columns_of(source, bases))
    columns: list[tuple[str, str]] = []
    for item in query.expressions:
        columns += list(known.items()) if item.is_star else [(item.alias_or_name or item.sql(), kind_of(item, known))]
    return columns


def kind_of(node: exp.Expression, known: dict[str, str]) -> str:
    node = node.unalias().unnest()
    if isinstance(node, exp.Case):
        return kind_of(node.args["ifs"][0].args["true"], known)
    if isinstance(node, exp.Cast):
        return node.to.sql().lower().replace(" ", "").replace("bigint", "long")
    if isinstance(node, exp.Literal):
        return "string" if node.is_string else "integer" if "." not in node.name else "decimal(3,2)"
    if isinstance(node, exp.Mul):
        return "decimal(32,4)"
    column = node.find(exp.Column)
    return "boolean" if isinstance(node, exp.Predicate | exp.Not) else known.get(column.name, "") if column else ""


AS_SUMS = {
    "Q1": Q1,
    "Q3 without LIMIT": Q3,
    "Q5": Q5,
    "Q6": Q6,
    "Q10": Q10,
    "Q12": Q12,
    "Q14": Q14,
    "a CTE": "WITH r AS (SELECT * FROM t WHERE k > 1) SELECT k, sum(n) AS s FROM r GROUP BY k",
    "a filter over groups": "WITH r AS (SELECT k, sum(n) AS s FROM t GROUP BY k) SELECT k + 1 AS j FROM r WHERE s > 1",
    "HAVING with an alias": "SELECT v, count(*) AS c FROM t GROUP BY v HAVING c > 1 AND sum(n) > 2",
    "all rows": "SELECT count(*) AS c, count(v) AS cv, sum(n) AS s FROM t",
    "an average of integers": "SELECT k, avg(n) AS a FROM t GROUP BY k",
    "a filter of an aggregate": "SELECT sum(n) FILTER (WHERE k > 1) AS s, count(*) FILTER (WHERE v = 'a') AS c FROM t",
    "a group by number": "SELECT upper(v) AS u, sum(n) AS s FROM t GROUP BY 1",
    "a group by alias": "SELECT upper(v) AS u, sum(n) AS s FROM t GROUP BY u",
    "all groups": "SELECT upper(v) AS u, k, sum(n) AS s FROM t GROUP BY ALL",
    "an expression over a group": "SELECT k % 2 + 1 AS j, count(*) AS c FROM t GROUP BY k % 2",
    "a qualified group": "SELECT a.k AS k, sum(x) AS s FROM t AS a JOIN u AS b ON a.k = b.k GROUP BY a.k",
    "a group with one qualifier": "SELECT k, sum(n) AS s FROM t AS a GROUP BY a.K",
    "UNION ALL": "SELECT k, sum(n) AS s FROM (SELECT k, n FROM t UNION ALL SELECT k, x FROM u) AS q GROUP BY k",
    "groups of groups": "SELECT max(s) AS m FROM (SELECT k, sum(n) AS s FROM t GROUP BY k) AS q",
    "DISTINCT": "SELECT DISTINCT k, v FROM t",
    "DISTINCT with a star": "SELECT DISTINCT * FROM t WHERE k > 1",
    "UNION": "SELECT k, n FROM t UNION SELECT k, x FROM u",
    "a count of two": "SELECT count(k, v) AS c FROM t",
}
AS_ROWS = {
    "SELECT k, count(DISTINCT v) AS c FROM t GROUP BY k": "COUNT(DISTINCT v)",
    "SELECT sum(DISTINCT n) AS c FROM t": "SUM(DISTINCT n)",
    "SELECT k, count(* EXCEPT (v)) AS c FROM t GROUP BY k": "a count of the columns of a star",
    "SELECT k, count(*, v) AS c FROM t GROUP BY k": "a count of the columns of a star",
    "SELECT k, sum(f) AS s FROM t GROUP BY k": "sums over DOUBLE are rounded",
    "SELECT k, avg(w) AS s FROM t GROUP BY k": "sums over FLOAT are rounded",
    "SELECT avg(d) AS s FROM t": "averages over DECIMAL(20,2)",
    "SELECT k, sum(v) AS s FROM t GROUP BY k": "sums over string",
    "SELECT DISTINCT k, count(*) AS c FROM t GROUP BY k": "DISTINCT over groups",
    "SELECT t.k, sum(x) AS s FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k": None,
    "SELECT k, n FROM t WHERE k > 1": None,
    "SELECT a.k FROM t AS a LEFT SEMI JOIN u ON a.k = u.k": None,
}


@pytest.mark.parametrize("text", AS_SUMS.values(), ids=AS_SUMS.keys())
def test_sums_counts_and_averages_over_a_linear_query_are_kept_as_partial_aggregates(text: str) -> None:
    found = shape(text)
    assert (found.shape, found.why) == (Shape.SUMS, None)
    assert found.sums is not None
    assert found.whole.text != found.followed.text
    for aggregate in ("SUM(", "COUNT(", "AVG(", "DISTINCT", "GROUP BY"):
        assert aggregate not in found.followed.text.upper()


@pytest.mark.parametrize(("text", "why"), AS_ROWS.items())
def test_other_queries_are_kept_as_rows_and_say_why_groups_are_recomputed(text: str, why: str | None) -> None:
    found = shape(text)
    assert (found.shape, found.sums, found.whole) == (Shape.ROWS, None, found.followed)
    assert found.why is None if why is None else (found.why or "").startswith(why)


def test_minima_and_maxima_are_kept_and_lost_ones_are_computed_from_the_base() -> None:
    found = shape("SELECT k, min(n) AS low, max(v) AS high, max(n) - min(n) AS width FROM t GROUP BY k")
    assert found.shape is Shape.SUMS
    assert found.why == "groups that lose their minimum or maximum are computed from the base"


def test_sums_of_floats_are_kept_if_they_may_drift() -> None:
    text = "SELECT k, sum(f) AS s, avg(w) AS a FROM t GROUP BY k"
    assert shape(text, drifting=True).shape is Shape.SUMS
    assert shape(text).shape is Shape.ROWS


def test_a_dynamic_table_keeps_rows() -> None:
    assert shape(Q1, sums=False).shape is Shape.ROWS


def test_an_argument_is_followed_once() -> None:
    found = shape("SELECT sum(n) AS s, avg(t.n) AS a, count(n) AS c, sum(N) + 1 AS b FROM t")
    names = [field["name"] for field in json.loads(found.followed.schema_json)["fields"]]
    assert names == ["tidemark_a0", "tidemark_a1"]  # the value, and whether it is there


def test_a_column_that_is_no_group_is_left_to_spark() -> None:
    assert shape("SELECT k + n AS x, sum(n) AS s FROM t GROUP BY k").why == "the column n is computed from the base"


FIELDS = {
    "a group": "SELECT k, c.k AS ck, count(*) AS n FROM s GROUP BY k, c.k",
    "an argument": "SELECT max(n) AS a, max(c.n) AS b, max(s.c.n) AS d, max(s.n) AS e, max(C.N) AS f FROM s",
    "a field of a field": "SELECT max(c.p.n) AS a, max(c.q.n) AS b, max(s.c.p.n) AS d, max(s.c.p.n.m) AS e FROM s",
}


@pytest.mark.parametrize(
    ("text", "followed"),
    list(zip(FIELDS.values(), (["k", "c.k"], ["n", "c.n"], ["c.p.n", "c.q.n", "s.c.p.n.m"]), strict=True)),
    ids=FIELDS,
)
def test_fields_of_structs_and_columns_of_one_name_are_kept_apart(text: str, followed: list[str]) -> None:
    found = shape(text)
    assert found.shape is Shape.SUMS
    query = sqlglot.parse_one(found.followed.text, dialect="databricks")
    (inner,) = query.find_all(exp.Subquery)
    assert [item.sql().replace("`", "").replace('"', "") for item in inner.this.expressions] == followed
    blocks = list(sqlglot.parse_one(found.read, dialect="databricks").find_all(exp.Select))
    (shown,) = (block.expressions for block in blocks if "tidemark_k" in block.args["from_"].this.alias)
    assert len({item.unalias().sql() for item in shown}) == len(followed) + ("count" in text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT c.k AS x, count(*) AS n FROM s GROUP BY c", "the column k is computed"),
        ("SELECT k, count(*) AS n FROM s GROUP BY k, s.k", "the group s.k is written in two ways"),
    ],
)
def test_a_column_is_no_group_for_its_last_name(text: str, why: str) -> None:
    assert (shape(text).why or "").replace("`", "").startswith(why)


def test_an_alias_that_hides_a_group_in_having_is_left_to_spark() -> None:
    text = "SELECT k % 2 AS k, sum(n) AS s FROM t GROUP BY k HAVING k > 1"
    assert (shape(text).why or "").startswith("k in HAVING has two meanings")


REFUSED = {
    "SELECT k, current_date() AS d FROM t": ("current_date", 1, 11),
    "SELECT k FROM t WHERE\n  f < rand()": ("rand", 2, 7),
    "SELECT count(*) FROM t WHERE v = current_user()": ("current_user", 1, 34),
    "SELECT uuid() AS i FROM t": ("uuid", 1, 8),
    "SELECT now() AS i FROM t": ("now", 1, 8),
    "SELECT k FROM t WHERE TIMESTAMP 'now' > NULL": ("'now'", 1, 33),
    "SELECT k FROM t WHERE d >= 'yesterday'": ("'yesterday'", 1, 28),
    "SELECT k FROM t WHERE d > TIMESTAMP'10:00'": ("'10:00'", 1, 36),
    "SELECT CAST('T09:30' AS TIMESTAMP) AS d FROM t": ("'t09:30'", 1, 13),
    "SELECT to_date('today') AS d FROM t": ("'today'", 1, 16),
    "SELECT k FROM t WHERE d > TIMESTAMP'today Europe/Paris'": ("'today europe/paris'", 1, 36),
}


@pytest.mark.parametrize(("text", "place"), REFUSED.items())
def test_run_time_values_are_found_with_their_place(text: str, place: tuple[str, int, int]) -> None:
    view = parse_view("v", text)
    found = runtime_value(view)
    assert found is not None
    refused = refused_values(view, found)
    assert isinstance(refused, ViewRefused)
    assert place[0] in refused.facts["construct"].lower()
    assert (refused.facts["line"], refused.facts["column"]) == place[1:]


def test_a_date_in_the_text_is_no_run_time_value() -> None:
    assert runtime_value(parse_view("v", Q1)) is None


def test_the_kept_table_is_named_in_the_text_of_a_catalogs_view() -> None:
    found = shape("SELECT v, count(*) AS c FROM t GROUP BY v")
    assert "delta.`/lake/v__partials`" in over_kept(found, "/lake/v__partials")
    assert as_stored_view("v", found, "/p").columns == (ViewColumn("v", "v"), ViewColumn("c", "c"))


@pytest.mark.parametrize(("path", "is_ours"), [("/lake/v", True), ("/lake/v__partials", True), ("/lake/v2", False)])
def test_a_catalogs_view_is_ours_if_it_reads_the_rows_of_its_name(path: str, is_ours: bool) -> None:
    text = over_kept(shape("SELECT v, count(*) AS c FROM t GROUP BY v"), path)
    assert is_over({"view_text": text}, "/lake/v") is is_ours
    assert not is_over(None, "/lake/v")


def test_a_query_over_a_materialized_view_reads_its_bases() -> None:
    inner = as_stored_query("w", shape("SELECT k, sum(n) AS s FROM t GROUP BY k"))

    def of_views(parts: tuple[str, ...], namespace: tuple[str, ...]) -> StoredTable | StoredView:
        return inner if parts == ("w",) else resolved(parts, namespace)

    view = StoredView("v", "SELECT s FROM w WHERE k > 1", ("c", "s"), (ViewColumn("s", "s"),))
    found = expand(view, "", of_views, beyond=True, is_builtin=lambda _: True, unnamed=True)
    assert found.bases == ("delta.`/t`",)
    assert found.views is not None
    assert list(found.views) == ["w"]


def test_a_plain_shape_reads_its_rows() -> None:
    query = expanded("SELECT k, v FROM t")
    assert plain_shape(query, "so").read == "SELECT `k`, `v` FROM tidemark_kept"
