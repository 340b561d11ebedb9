"""Which columns the lake has, and how: by patterns, by names of before, and the stricter of several answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import (
    Column,
    ObjectName,
    ReplicationOptions,
    Selection,
    Shown,
    TableSchema,
    TypeKind,
    UnifiedType,
)
from tidemark.replication.planning.hiding import hasher, hasher_of, mark_of, marked, require_secret
from tidemark.replication.planning.selection import require_column_patterns
from tidemark.replication.planning.showing import chosen_columns, held_columns, renamed_notices, shown

T = ObjectName("s", "t")
LONG = UnifiedType(TypeKind.LONG)
RULES = ColumnRules(Selection(exclude=("s.t.gone",)), mask=("s.*.m*", "s.t.both"), hash=("s.t.h", "s.t.both"))
SECRET = "a secret of sixteen"


def schema(*names: str) -> TableSchema:
    return TableSchema(
        tuple(Column(name, LONG, "bigint", key=name == "id", number=n) for n, name in enumerate(names, 1))
    )


@pytest.mark.parametrize(
    ("name", "how"),
    [("id", Shown.PLAIN), ("gone", Shown.EXCLUDED), ("m1", Shown.MASKED), ("h", Shown.HASHED), ("both", Shown.MASKED)],
)
def test_the_stricter_pattern_counts(name: str, how: Shown) -> None:
    assert shown(RULES, T, name) is how
    assert shown(RULES, ObjectName("other", "t"), name) is Shown.PLAIN


@pytest.mark.parametrize("name", ["Gone", "M1", "H", "BOTH"])
def test_a_column_in_another_case_is_hidden_where_names_are_the_same_in_any_case(name: str) -> None:
    mysql = replace(RULES, by_name=True)
    assert shown(RULES, T, name) is Shown.PLAIN
    assert shown(mysql, T, name) is shown(mysql, ObjectName("S", "T"), name) is shown(RULES, T, name.lower())


def test_an_include_of_columns_fits_the_table_as_it_is_written_first() -> None:
    rules = ColumnRules(Selection(include=("s.t.Name", "S.T")), by_name=True)
    assert [shown(rules, T, one) for one in ("name", "other")] == [Shown.PLAIN, Shown.EXCLUDED]
    assert shown(rules, ObjectName("S", "T"), "other") is Shown.PLAIN
    upper = replace(rules, selection=Selection(include=("S.T.name",)))
    assert [shown(upper, T, one) for one in ("Name", "other")] == [Shown.PLAIN, Shown.EXCLUDED]


@pytest.mark.parametrize("before", ["gone", "m1", "h"])
def test_a_column_is_hidden_by_the_name_it_had_as_long_as_a_pattern_names_that(before: str) -> None:
    held = held_columns(RULES, T, schema("id", before))
    assert [(one.number, one.names) for one in held] == [(2, (before,))]
    later = replace(RULES, held=held)
    assert shown(later, T, "open", 2) is shown(RULES, T, before)
    assert shown(later, T, "open", 3) is Shown.PLAIN
    (notice,) = renamed_notices(later, T, schema("id", "open"))
    assert notice.startswith(f"column {before} is called open now")
    assert held_columns(later, T, schema("id", "open")) == held
    assert held_columns(later, T, schema("id")) == held  # gone: a backlog may have it
    assert held_columns(ColumnRules(held=held), T, schema("id", "open")) == ()


def test_a_name_that_hides_less_does_not_help() -> None:
    held = (HeldColumn(2, ("gone",), Shown.EXCLUDED),)
    assert shown(replace(RULES, held=held), T, "h", 2) is Shown.EXCLUDED
    assert shown(replace(RULES, held=(HeldColumn(2, ("h",), Shown.HASHED),)), T, "gone", 2) is Shown.EXCLUDED


def test_columns_that_are_included_by_name_stay_these() -> None:
    rules = ColumnRules(Selection(include=("s.t.name",)))
    before = schema("id", "name", "private")
    held = held_columns(rules, T, before)
    swapped = schema("id", "was_name", "name")
    found = chosen_columns(replace(rules, held=held), T, swapped, ())
    assert [one.name for one in found.schema.columns] == ["id"]
    assert [one.name for one in found.left] == ["was_name", "name"]


def test_a_hidden_column_is_a_text_without_a_value() -> None:
    filled = TableSchema((Column("h", LONG, "bigint", filled="7", number=1),))
    (column,) = chosen_columns(RULES, T, filled, ()).schema.columns
    assert (column.type.kind, column.shown, column.filled) == (TypeKind.STRING, Shown.HASHED, None)
    assert column.unknown_fill


def test_a_hash_is_that_of_the_secret_alone() -> None:
    assert hasher(SECRET)("x") == "013ccd8709e3b7b9c95a6524d5c9c61b2719e8bae0fd2c1fda0dc0f047c1d3ee"
    assert hasher(SECRET)("x") != hasher(SECRET + "!")("x")
    address = SourceAddress(SourceKind.POSTGRESQL, "h", 1, "d", "u", hash_secret=SECRET)
    options = marked(ReplicationOptions(target="l", hash_columns=("a.b.c",)), address)
    assert options.hash_mark == mark_of(SECRET)
    told = hasher_of(options, address)
    assert told is not None
    assert told("x") == hasher(SECRET)("x")
    assert hasher_of(ReplicationOptions(target="l"), address) is None
    assert SECRET not in f"{address!r}{options!r}"


@pytest.mark.parametrize(
    ("secret", "mark", "told"),
    [(None, None, "has none"), ("", None, "has none"), ("too short", None, "9 characters"), (SECRET, "x", "old one")],
)
def test_a_secret_that_cannot_be_is_refused_without_telling_it(secret: str | None, mark: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told) as refused:
        require_secret(secret, mark, why="hash_columns")
    assert not secret or secret not in str(refused.value)


@pytest.mark.parametrize("pattern", ["s", "s.t", "s.t.c.d", ""])
def test_what_is_hidden_is_a_column(pattern: str) -> None:
    with pytest.raises(InvalidArgument, match=r"schema\.table\.column"):
        require_column_patterns("mask_columns", ("s.t.c", pattern))
