"""Which tables and columns patterns take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidArgument, ObjectNotReplicable, ReplicationRefused
from tidemark.replication.model.replication import (
    Column,
    FoundObject,
    HeldTable,
    NameCase,
    ObjectName,
    ReplicationOptions,
    Selection,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)
from tidemark.replication.planning.kept_out import held_tables, kept_out_notices, without_renamed
from tidemark.replication.planning.selection import (
    is_backfilled,
    mode_of,
    require_patterns,
    require_targets,
    select,
    under_known_names,
    unmatched,
    unmatched_excludes,
    why_no_target,
)

LONG = UnifiedType(TypeKind.LONG)
NAME = ObjectName("s", "t")


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


def test_names_are_taken_in_any_case_as_far_as_the_source_does() -> None:
    include = ("Shop.Orders.X", "Shop.i*", "shop.people")
    found = [replace(one, any_case=case) for case in NameCase for one in FOUND[:1]]
    chosen = [select(Selection(include), [each]) for each in found]
    assert chosen[:2] == [(), ()]
    assert [column.name for column in chosen[2][0].schema.columns] == ["id", "x"]
    excluded = Selection(exclude=("SHOP.orders", "shop.ITEMS.y"))
    assert [len(select(excluded, [each])) for each in found] == [1, 1, 0]
    items = [replace(FOUND[1], any_case=case) for case in NameCase]
    assert [[one.name for one in select(excluded, [each])[0].schema.columns] for each in items] == [
        ["id", "x", "y"], ["id", "x"], ["id", "x"],
    ]  # fmt: skip
    assert [unmatched(Selection(include), [each]) for each in found] == [include, include, include[1:]]
    assert [unmatched_excludes(excluded, [each]) for each in found] == [("SHOP.orders",), ("SHOP.orders",), ()]


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


def test_options_name_the_modes_of_single_tables() -> None:
    named = ReplicationOptions(target="t", append_only_tables=("s.log*", "audit"), merge_tables=("s.*",))
    keyed, keyless = table("s", "t").schema, table("s", "t", "x").schema
    appended = [ObjectName("s", "logins"), ObjectName("audit", "t")]
    assert {mode_of(named, name, schema) for name in appended for schema in (keyed, keyless)} == {WriteMode.APPEND_ONLY}
    assert mode_of(replace(named, mode=WriteMode.APPEND_ONLY), NAME, keyed) is WriteMode.MERGE
    assert mode_of(named, NAME, keyless) is WriteMode.MERGE
    assert mode_of(named, ObjectName("other", "t"), keyless) is WriteMode.APPEND_ONLY


def test_targets_that_the_options_give_one_name_are_refused() -> None:
    names = [ObjectName("a", "t"), ObjectName("b", "T")]
    require_targets("r", names)
    with pytest.raises(ReplicationRefused, match=r"would be written to one target, [tT]"):
        require_targets("r", names, target_table="{table}")
    refused = why_no_target(names[:1], names, target_table="{table}")
    assert list(refused) == names[1:]
    assert "written to T, as a.t is" in refused[names[1]]


def test_a_table_without_key_is_no_mirror() -> None:
    merge, append = ReplicationOptions(target="t"), ReplicationOptions(target="t", mode=WriteMode.APPEND_ONLY)
    keyed, keyless = table("s", "t").schema, table("s", "t", "x").schema
    both = ReplicationOptions(target="t", without_key=WriteMode.MERGE)
    assert mode_of(both, NAME, keyless) is WriteMode.MERGE
    assert mode_of(replace(both, mode=WriteMode.APPEND_ONLY), NAME, keyless) is WriteMode.APPEND_ONLY
    assert [mode_of(merge, NAME, keyed), mode_of(merge, NAME, keyless), mode_of(append, NAME, keyed)] == [
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


@pytest.mark.parametrize(
    ("include", "exclude", "now", "comes"),
    [
        (("shop",), ("hr.secrets",), "shop.secrets", False),
        ((), ("hr",), "shop.people", False),
        (("shop", "shop.secrets*"), ("hr.secrets",), "shop.secrets_old", False),
        (("shop", "shop.secrets_old"), ("hr.secrets",), "shop.secrets_old", True),
        (("shop", "shop.secrets_old.id"), ("*.secrets",), "shop.secrets_old", True),
        (("shop",), ("hr.secrets.x",), "shop.secrets_old", True),
        (("shop",), (), "shop.secrets_old", True),
    ],
)
def test_an_excluded_table_stays_out_under_another_name(
    include: tuple[str, ...], exclude: tuple[str, ...], now: str, comes: bool
) -> None:
    selection = Selection(include, exclude)
    before = held_tables(selection, (), [table("hr", "secrets", source_id="1"), table("shop", "orders")], {})
    renamed = [table(*now.split("."), source_id="1"), table("shop", "orders")]
    for _ in range(2):
        before = held_tables(selection, before, renamed, {})
        found = without_renamed(selection, before, renamed, ())
        taken = [one.name.text for one in select(selection, found)]
        assert (taken, len(list(kept_out_notices(selection, before, ())))) == (
            (["shop.orders", now], 0) if comes else (["shop.orders"], 1)
        )


def test_what_is_gone_or_excluded_no_more_is_forgotten_and_objects_keep_their_names() -> None:
    secrets = HeldTable("1", ObjectName("shop", "old"), (ObjectName("shop", "secrets"),))
    selection = Selection(("shop",), ("shop.secrets",))
    there = [table("shop", "old", source_id="1")]
    assert held_tables(selection, [secrets], there, {}) == (secrets,)
    assert held_tables(selection, [secrets], [table("shop", "items")], {}) == ()
    assert held_tables(Selection(("shop",)), [secrets], there, {}) == ()
    known = {"1": ObjectName("shop", "secrets")}
    assert held_tables(selection, (), there, known) == (secrets,)
    assert without_renamed(selection, [secrets], there, known) == tuple(there)
    assert list(kept_out_notices(selection, [secrets], known)) == []
    assert list(kept_out_notices(Selection(("hr",), ("shop.secrets",)), [secrets], ())) == []
