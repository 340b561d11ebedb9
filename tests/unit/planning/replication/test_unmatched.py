"""A pattern that should hide columns and matches none is reported with similar names."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.replication.model.catalog import HeldColumn
from tidemark.replication.model.replication import (
    Column,
    FoundObject,
    ObjectName,
    ReplicationOptions,
    Selection,
    Shown,
    TableSchema,
    TypeKind,
    UnifiedType,
)
from tidemark.replication.planning.patterns import parts_of, pattern_of
from tidemark.replication.planning.selection import unmatched_excludes
from tidemark.replication.planning.unmatched import hiding_patterns, unmatched_columns, unmatched_notices

TEXT = UnifiedType(TypeKind.STRING)


def table(name: str, *columns: str) -> FoundObject:
    made = TableSchema(tuple(Column(one, TEXT, "text") for one in columns))
    return FoundObject(ObjectName("shop", name), name, made)


CUSTOMERS = table("customers", "id", "email", "phone", "e.mail")
FOUND = (CUSTOMERS, table("orders", "id", "note"))


def told(*masked: str, held: tuple[HeldColumn, ...] = ()) -> dict[str, str]:
    patterns = hiding_patterns(Selection(), ReplicationOptions("lake", mask_columns=masked))
    return {one.pattern: text for one, text in unmatched_columns(patterns, FOUND, {"customers": held}).items()}


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("shop.customers.emial", " Did you mean shop.customers.email"),
        ("shop.custmers.email", " Did you mean shop.customers.email"),
        ("shop.customers.Phone", " Did you mean shop.customers.phone?"),
        ('shop.customers."e.mall"', ' Did you mean shop.customers."e.mail"'),
        ("shop.customers.zzz", ""),
        ("shop.*.emial", ""),
    ],
)
def test_a_pattern_that_matches_no_column_is_told_with_similar_names(pattern: str, meant: str) -> None:
    text = told(pattern)[pattern]
    assert text.startswith(
        f"mask_columns names {pattern}, which matches no column of the source and hides nothing.{meant}"
    )
    assert bool(meant) == ("Did you mean" in text)


@pytest.mark.parametrize("pattern", ["shop.customers.email", "*.*.phone", "shop.*.e*", 'shop."customers"."e.mail"'])
def test_a_pattern_that_matches_a_column_is_not(pattern: str) -> None:
    assert told(pattern) == {}


def test_excludes_of_columns_are_asked_too_and_a_column_that_the_lake_lacks_counts() -> None:
    options = ReplicationOptions("lake", hash_columns=("shop.customers.x",))
    patterns = hiding_patterns(Selection(exclude=("shop", "shop.orders", "shop.customers.gone")), options)
    assert [(one.argument, one.pattern) for one in patterns] == [
        ("exclude", "shop.customers.gone"), ("hash_columns", "shop.customers.x"),
    ]  # fmt: skip
    lacking = replace(CUSTOMERS, excluded=("gone",), generated=("x",))
    assert unmatched_columns(patterns, (lacking,)) == {}


def test_a_hidden_column_of_another_name_explains_a_pattern() -> None:
    held = (HeldColumn(2, ("mail",), Shown.MASKED),)
    assert told("shop.customers.mail", held=held) == {}
    patterns = hiding_patterns(Selection(), ReplicationOptions("lake", mask_columns=("shop.customers.mail",)))
    assert list(unmatched_notices(patterns, replace(CUSTOMERS, held=held))) == []
    assert len(list(unmatched_notices(patterns, CUSTOMERS))) == 1


def test_an_object_is_told_of_the_patterns_that_name_one_column_of_it() -> None:
    masked = ("shop.customers.emial", "shop.orders.nota", "shop.*.nothing", "shop.customers.phone")
    patterns = hiding_patterns(Selection(), ReplicationOptions("lake", mask_columns=masked))
    (notice,) = unmatched_notices(patterns, CUSTOMERS)
    assert "shop.customers.emial" in notice


def test_excludes_of_tables_that_do_not_exist_are_found() -> None:
    selection = Selection(exclude=("shop.orders", "shop.secrts", "hr", "shop.was", "shop.orders.nothing"))
    assert unmatched_excludes(selection, FOUND, [ObjectName("shop", "was")]) == ("shop.secrts", "hr")


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_a_pattern_of_names_has_these_as_its_parts(names: list[str]) -> None:
    assert parts_of(pattern_of(names)) == tuple(names)
