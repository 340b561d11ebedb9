"""Queries by which files are chosen, and those by which none is left out."""

from __future__ import annotations

import pytest

from tests.unit.search.tables import METADATA
from tidemark.search.planning.queries import SearchedQuery, searched_query
from tidemark.sql.statements import parse_statement


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
