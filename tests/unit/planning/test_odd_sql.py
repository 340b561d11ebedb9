"""SQL that is nested more deeply than Python's stack, or over which sqlglot stumbles, is refused in our own words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
import sqlglot

from tests.unit.planning.views.catalogs import Catalog
from tidemark.changes.planning.views.parts import numbered
from tidemark.changes.planning.views.text import parse_view
from tidemark.delivery.planning.constraints import check_texts
from tidemark.errors import SqlCompilationError, StatementRefused, ViewNotUnderstood
from tidemark.model.views import ViewQuery
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tree_of, written
from tidemark.sql.statements import parse_statement
from tidemark.streams.planning.stream_sql.constants import Constants, NotConstant
from tidemark.streams.planning.stream_sql.mentions import tables_read
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.tables import table_statement

NOW = datetime(2026, 11, 21, tzinfo=UTC)
DEEP = 400
SHAPES: dict[str, Callable[[str], str]] = {
    "parentheses": lambda inner: "(" * DEEP + inner + ")" * DEEP,
    "cases": lambda inner: "CASE WHEN a > 0 THEN 1 ELSE " * DEEP + inner + " END" * DEEP,
    "calls": lambda inner: "coalesce(a, " * DEEP + inner + ")" * DEEP,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_check_of_a_table_is_taken_as_it_stands(shape: str) -> None:
    sql = SHAPES[shape]("1") + " > 0"
    (found,) = check_texts({"delta.constraints.deep": sql}, NOW)
    assert (found.sql, found.names) == (sql, None)
    assert check_texts({"delta.constraints.deep": f"{sql} AND t < now()"}, NOW) == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_statement_is_refused(shape: str) -> None:
    text = f"INSERT INTO t SELECT {SHAPES[shape]('1')} FROM s"
    with pytest.raises(StatementRefused, match="nested too deeply"):
        parse_statement(text)
    assert tables_read(text) == ()


def test_a_deep_view_is_not_understood() -> None:
    text = f"SELECT {SHAPES['parentheses']('a')} AS a FROM t"
    with pytest.raises(ViewNotUnderstood, match="nested too deeply"):
        parse_view("v", text)
    with pytest.raises(ViewNotUnderstood, match="nested too deeply"):
        numbered(ViewQuery("v", text, "{}", ("t",), {}, "digest"))


@pytest.fixture
def usual_stack() -> Iterator[None]:
    """Python's own limit: libraries of other tests raise it for the process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_stack")
def test_views_that_are_nested_too_deeply_together_are_not_understood() -> None:
    catalog = Catalog()
    for number in range(90):
        catalog.put(f"v{number}", f"SELECT a FROM {f'v{number - 1}' if number else 't'}")
    with pytest.raises(ViewNotUnderstood, match="nested too deeply"):
        catalog.query("SELECT a FROM v89")


def test_a_deep_constant_is_none() -> None:
    constants = Constants(NOW, UTC)
    for text in (SHAPES["parentheses"]("1"), " + ".join(["1"] * 3000)):
        with pytest.raises(NotConstant):
            constants.value(text)
        with pytest.raises(NotConstant):
            constants.selected(f"({text})")


def test_a_deep_table_is_left_to_spark() -> None:
    assert table_statement(f"CREATE TABLE t (a INT DEFAULT {SHAPES['parentheses']('1')})") is None


@pytest.mark.parametrize("stumble", [RecursionError(), AttributeError("'NoneType' has no attribute 'x'"), KeyError()])
def test_whatever_sqlglot_raises_the_text_is_not_understood(
    stumble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of("SELECT 1", SPARK)

    def stumbles(*_: object, **__: object) -> object:
        raise stumble

    monkeypatch.setattr(sqlglot, "parse", stumbles)
    monkeypatch.setattr(type(tree), "sql", stumbles)
    for asked in (lambda: tree_of("SELECT 1", SPARK), lambda: written(tree, SPARK)):
        with pytest.raises(SqlNotUnderstood, match=r"\S"):
            asked()


@pytest.mark.parametrize(
    "text",
    [
        "(SELECT 1/0)",
        "(SELECT 'x' * 2)",
        "(SELECT DATEADD(day, -9999999, CURRENT_TIMESTAMP()))",
        "DATEADD(year, -3000, CURRENT_TIMESTAMP())",
        "DATEADD(day, 'NaN', CURRENT_TIMESTAMP())",
        "DATEADD(month, 1e999999999, CURRENT_TIMESTAMP())",
        "DATEADD(month, '1e999999999', CURRENT_TIMESTAMP())",
        "CURRENT_TIMESTAMP() + INTERVAL '1e999999999 months'",
        "'NaN'::number",
        "'1e999999999'::number",
        "1e999999999",
        "0e-999999999",
    ],
)
def test_an_expression_without_a_value_is_no_constant(text: str) -> None:
    constants = Constants(NOW, UTC)
    for read in (constants.value, constants.selected):
        with pytest.raises(NotConstant):
            read(text)


@pytest.mark.parametrize(
    "point",
    [
        "OFFSET => 'NaN'::number",
        "OFFSET => -1e400",
        "VERSION => 'inf'::number",
        "VERSION => 1e999999999",
        "TIMESTAMP => '0001-01-01 00:00:00 +14:00'::timestamp_tz",
        "TIMESTAMP => DATEADD(year, 9000, CURRENT_TIMESTAMP())",
    ],
)
def test_a_point_beyond_all_numbers_and_years_is_an_error_with_its_place(point: str) -> None:
    with pytest.raises(SqlCompilationError, match=r"line 1, column \d+: "):
        parse_stream_sql(f"CREATE STREAM s ON TABLE shop.orders AT({point})", now=NOW)
