"""Predicates as terms: what is understood exactly, and what leaves no file out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from tests.unit.search.tables import METADATA
from tidemark.model.table_log import Metadata
from tidemark.search.model.terms import AllOf, AnyOf, Anything, Holds, IsIn, Like, Term, Within, is_exact
from tidemark.search.planning.predicates import term_of


def _shown(term: Term) -> object:
    match term:
        case IsIn():
            return term.column.name, term.values
        case Holds():
            return term.column.name, "holds", term.values
        case Like():
            return term.column.name, "like", term.pattern
        case Within():
            return term.column.name, term.least, term.most, term.with_least, term.with_most
        case AllOf() | AnyOf():
            return type(term).__name__, *map(_shown, term.parts)
    return "anything"


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("id = 'a'", ("id", ("a",))),
        ("'a' = ID", ("id", ("a",))),
        ("t.id = 'a'", ("id", ("a",))),
        ("`id` <=> 'a'", ("id", ("a",))),
        ("n IN (1, -2, NULL)", ("n", (1, -2))),
        ("n = 5L", ("n", (5,))),
        ("n = CAST(127 AS TINYINT)", ("n", (127,))),
        ("n BETWEEN 1 AND 1", ("n", 1, 1, True, True)),
        ("3 < n", ("n", 3, None, False, True)),
        ("n <= 3", ("n", None, 3, True, True)),
        ("d = DATE'2026-01-02'", ("d", (date(2026, 1, 2),))),
        ("d = '2026-01-02'", ("d", (date(2026, 1, 2),))),
        ("m = 1.50", ("m", (Decimal("1.50"),))),
        ("s.f = 'a'", ("s.f", ("a",))),
        ("t.s.k = 7", ("s.k", (7,))),
        ("array_contains(tags, 'a')", ("tags", "holds", ("a",))),
        ("arrays_overlap(array('a', 'b'), tags)", ("tags", "holds", ("a", "b"))),
        ("id LIKE 'a_b%'", ("id", "like", "a_b%")),
        ("contains(id, 'abc')", ("id", "like", "%abc%")),
        ("startswith(id, 'abc')", ("id", "like", "abc%")),
        ("endswith(id, 'abc')", ("id", "like", "%abc")),
        ("id = 'a' AND (n = 1 OR n = 2)", ("AllOf", ("id", ("a",)), ("AnyOf", ("n", (1,)), ("n", (2,))))),
        ("t = TIMESTAMP'2026-07-01 12:00:00'", ("t", (datetime(2026, 7, 1, 10, tzinfo=UTC),))),
    ],
)
def test_a_predicate_is_understood(where: str, shown: object) -> None:
    term = term_of(where, METADATA, zone=ZoneInfo("Europe/Berlin"), names=("t",))
    assert _shown(term) == shown
    assert is_exact(term)


@pytest.mark.parametrize(
    "where",
    [
        "NOT id = 'a'",
        "id NOT LIKE 'a%'",
        "id NOT IN ('a')",
        "n NOT BETWEEN 1 AND 2",
        "id <> 'a'",
        "id IS NULL",
        "id = 5",
        "n = '5'",
        "n = 1.5",
        "n = 99999999999999999999",
        "n = CAST(300 AS TINYINT)",
        "n = TRY_CAST(300 AS TINYINT)",
        "n > CAST(3000000000 AS INT)",
        "m = CAST(5.7 AS INT)",
        "m > BIGINT(5.7)",
        "x = 1.5",
        "padded = 'a'",
        "id = upper('a')",
        "upper(id) = 'A'",
        "id = n",
        'id = "a"',
        r"id = 'a\n'",
        "id LIKE 'a/%' ESCAPE '/'",
        "id = '${secret}'",
        "contains(id, 'a%')",
        "id IN (SELECT 'a')",
        "d = '2026-1-2'",
        "d = 'today'",
        "id = 'a' 'b'",
        "id = 'O''Brien'",
        "id = 'a\ud83d'",
        "id = 'a' GROUP BY id",
        "id = 'a' --",
        "TRUE",
        "tags = 'a'",
        "other.id = 'a'",
    ],
)
def test_a_predicate_that_may_mean_more_leaves_no_file_out(where: str) -> None:
    found = term_of(where, METADATA, zone=UTC, names=("t",))
    if where == "id = 'a' --":  # a comment
        assert _shown(found) == ("id", ("a",))
    else:
        assert isinstance(found, Anything)


def test_a_time_without_a_known_zone_leaves_no_file_out() -> None:
    assert isinstance(term_of("t = TIMESTAMP'2026-07-01 12:00:00'", METADATA, zone=None), Anything)


def test_a_part_that_is_not_understood_is_no_reason_to_forget_the_others() -> None:
    term = term_of("id = 'a' AND length(p) > 3", METADATA)
    assert _shown(term) == ("AllOf", ("id", ("a",)), "anything")
    assert not is_exact(term)


def test_a_name_that_may_be_a_column_or_a_field_of_a_struct_leaves_no_file_out() -> None:
    inner = {"type": "struct", "fields": [{"name": name, "type": "string", "metadata": {}} for name in ("a", "b")]}
    fields = [{"name": "a", "type": "double", "metadata": {}}, {"name": "T", "type": inner, "metadata": {}}]
    metadata = Metadata("table", json.dumps({"type": "struct", "fields": fields}), (), {})
    for where in ("t.a = 'x'", "t.t.a = 'x'"):
        assert isinstance(term_of(where, metadata, names=("t",)), Anything)
    assert _shown(term_of("t.b = 'x'", metadata, names=("t",))) == ("T.b", ("x",))
    assert _shown(term_of("t.a = 'x'", metadata)) == ("T.a", ("x",))
