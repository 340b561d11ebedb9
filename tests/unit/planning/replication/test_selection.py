"""Which tables and columns patterns take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidArgument, ObjectNotReplicable, ReplicationRefused
from tidemark.model.replication import (
    Column,
    FoundObject,
    ObjectName,
    ReplicationOptions,
    Selection,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.planning.replication.selection import (
    is_backfilled,
    mode_of,
    require_patterns,
    require_targets,
    select,
    under_known_names,
    unmatched,
)

LONG = UnifiedType(TypeKind.LONG)


def table(schema: str, name: str, *columns: str, source_id: str = "", **how: str) -> FoundObject:
    names = columns or ("id", "x", "y")
    made = TableSchema(tuple(Column(one, LONG, "bigint", key=one == "id") for one in names))
    return FoundObject(ObjectName(schema, name), source_id or f"{schema}.{name}", made, **how)  # type: ignore[arg-type]


FOUND = (table("shop", "orders"), table("shop", "items"), table("hr", "people"), table("a.b", "c"))


def taken(*include: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [one.name.text for one in select(Selection(include, exclude), FOUND)]


@pytest.mark.parametrize(
    ("include", "names"),
    [
        ((), ["a.b.c", "hr.people", "shop.items", "shop.orders"]),
        (("shop",), ["shop.items", "shop.orders"]),
        (("shop.o*",), ["shop.orders"]),
        (("*.people", "shop.items"), ["hr.people", "shop.items"]),
        (('"a.b".c',), ["a.b.c"]),
        (("Shop",), []),
        (("s*p.*e*",), ["shop.items", "shop.orders"]),
    ],
)
def test_includes_name_schemas_and_tables(include: tuple[str, ...], names: list[str]) -> None:
    assert taken(*include) == names


def test_excludes_win() -> None:
    assert taken("shop", exclude=("*.items",)) == ["shop.orders"]
    assert taken(exclude=("shop", "hr")) == ["a.b.c"]


def test_columns_are_taken_and_left_out_and_the_key_stays() -> None:
    selection = Selection(include=("shop.orders.x", "shop.items"), exclude=("shop.*.y",))
    items, orders = select(selection, FOUND)
    assert [one.name for one in items.schema.columns] == ["id", "x"]
    assert [one.name for one in orders.schema.columns] == ["id", "x"]
    assert orders.excluded == ("y",)


@pytest.mark.parametrize("exclude", ["shop.orders.id", "shop.orders.*"])
def test_a_key_cannot_be_left_out(exclude: str) -> None:
    with pytest.raises(ObjectNotReplicable, match="key column id is excluded"):
        select(Selection(exclude=(exclude,)), FOUND)


def test_a_table_without_any_column_left_is_refused() -> None:
    with pytest.raises(ObjectNotReplicable, match="all of its columns"):
        select(Selection(exclude=("s.t.*",)), [table("s", "t", "x")])


def test_includes_that_name_nothing_are_told() -> None:
    selection = Selection(include=("shop.order", "hr.people.name", "shop.orders.x", "x*", "shop", "s*"))
    assert unmatched(selection, FOUND) == ("shop.order", "hr.people.name", "x*")


@pytest.mark.parametrize("pattern", ["", ".", "a.", ".a", 'a"b', '"a', "a.b.c.d", '""'])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgument, match="include"):
        require_patterns("include", [pattern])


@given(st.lists(st.text(min_size=1), min_size=1, max_size=2))
def test_a_quoted_name_is_a_pattern_of_itself(parts: list[str]) -> None:
    pattern = ".".join('"' + one.replace('"', '""') + '"' for one in parts)
    require_patterns("include", [pattern])
    one = table(parts[0], parts[-1])
    assert select(Selection(include=(pattern,)), [one]) == (one,)


def test_objects_that_are_backfilled_by_themselves() -> None:
    options = ReplicationOptions(target="t", backfill_exclude=("shop.i*", "hr"))
    assert [is_backfilled(options, one.name) for one in FOUND] == [True, False, False, True]
    assert not is_backfilled(ReplicationOptions(target="t", backfill=False), FOUND[0].name)


def test_a_table_without_key_is_no_mirror() -> None:
    merge, append = ReplicationOptions(target="t"), ReplicationOptions(target="t", mode=WriteMode.APPEND_ONLY)
    keyed, keyless = table("s", "t").schema, table("s", "t", "x").schema
    both = ReplicationOptions(target="t", without_key=WriteMode.MERGE)
    assert mode_of(both, keyless) is WriteMode.MERGE
    assert mode_of(replace(both, mode=WriteMode.APPEND_ONLY), keyless) is WriteMode.APPEND_ONLY
    assert [mode_of(merge, keyed), mode_of(merge, keyless), mode_of(append, keyed)] == [
        WriteMode.MERGE,
        WriteMode.APPEND_ONLY,
        WriteMode.APPEND_ONLY,
    ]


@pytest.mark.parametrize("other", [ObjectName("a", "b_c"), ObjectName("A_b", "C"), ObjectName("a", "b/c")])
def test_two_objects_may_not_share_a_target(other: ObjectName) -> None:
    with pytest.raises(ReplicationRefused, match="one target"):
        require_targets("r", [ObjectName("a_b", "c"), other])


def test_a_renamed_table_goes_on_under_its_name() -> None:
    known = {"1": ObjectName("shop", "orders")}
    there = [table("shop", "orders_old", source_id="1"), table("shop", "orders", source_id="2"), table("shop", "items")]
    names = under_known_names(known, there)
    assert [one.name.text for one in names.found] == ["shop.orders", "shop.items"]
    assert (names.renamed, names.taken) == ({"shop.orders": "shop.orders_old"}, ("shop.orders",))
