"""Queries by which files are chosen, and those by which none is left out."""

from __future__ import annotations

import json

import pytest

from tests.unit.search.tables import METADATA
from tidemark.model.table_log import Metadata
from tidemark.search.planning.queries import SearchedQuery, searched_query
from tidemark.sql.statements import parse_statement

_LONG = {"type": "long", "nullable": True, "metadata": {}}
_STRUCT = {"type": "struct", "fields": [{"name": "n", **_LONG}, {"name": "k", **_LONG}]}
_COLUMNS = [{"name": "id", **_LONG}, {"name": "n", **_LONG}, {"name": "nested", **_LONG, "type": _STRUCT}]
_NESTED = Metadata("table", json.dumps({"type": "struct", "fields": _COLUMNS}), (), {})


def _searched(text: str) -> SearchedQuery | None:
    statement = parse_statement(text)
    return searched_query(statement.sql, statement.mentions)


def test_an_alias_without_columns_qualifies_those_of_the_table() -> None:
    found = _searched("SELECT a.n FROM db.t AS a WHERE a.n = 1")
    assert found is not None
    assert found.names == ("a",)
    assert _searched("SELECT n FROM db.t a ORDER BY n LIMIT 3") is not None


@pytest.mark.parametrize("rest", ["WHERE n = 1", "WHERE a.n > 3 AND id = 'x'", "ORDER BY n LIMIT 3"])
def test_an_alias_that_renames_columns_leaves_no_file_out(rest: str) -> None:
    """`n` is the first column of the table, whose name is `id`."""
    assert METADATA.schema_json.index('"id"') < METADATA.schema_json.index('"n"')
    assert _searched(f"SELECT * FROM db.t AS a(n, id, d, m, t, x, padded, short, tags, s, p) {rest}") is None
    assert _searched(f"SELECT * FROM db.t a(n, id, d, m, t, x, padded, short, tags, s, p) {rest}") is None


@pytest.mark.parametrize("shown", ["_metadata.file_path", "a._METADATA.row_id", "id, upper(`_metadata`.file_name)"])
def test_a_query_of_the_hidden_column_leaves_no_file_out(shown: str) -> None:
    assert _searched(f"SELECT {shown} FROM db.t AS a WHERE n = 1") is None
    assert _searched(f"SELECT id FROM db.t AS a WHERE n = 1 AND {shown.split(', ')[-1]} IS NOT NULL") is None


@pytest.mark.parametrize("shown", ["nested.n", "a.nested.n", "nested.*", "n, nested.N", "id AS n", "n AS n"])
def test_an_order_by_a_column_of_the_answer_leaves_no_file_out(shown: str) -> None:
    """Spark orders by the column of the answer, if it has one of the name."""
    found = _searched(f"SELECT {shown} FROM db.t AS a ORDER BY n LIMIT 3")
    assert found is None or found.first_rows(_NESTED) is None


@pytest.mark.parametrize("shown", ["*", "a.*", "n", "a.n", "id, N", "id", "nested.k", "n, nested"])
def test_an_order_by_a_column_of_the_table_has_first_rows(shown: str) -> None:
    found = _searched(f"SELECT {shown} FROM db.t AS a ORDER BY n LIMIT 3")
    first = None if found is None else found.first_rows(_NESTED)
    assert first is not None
    assert (first.column.name, first.count) == ("n", 3)


def test_a_struct_is_ordered_by_its_field() -> None:
    found = _searched("SELECT nested FROM db.t ORDER BY nested.n LIMIT 3")
    first = None if found is None else found.first_rows(_NESTED)
    assert first is not None
    assert first.column.name == "nested.n"
