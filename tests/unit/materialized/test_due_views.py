"""Which views are due, in which order, as of when: decisions without a store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidemark.materialized.model.definitions import KeptKind, KeptView, TargetLag
from tidemark.materialized.planning.columns import changed_column, columns_read
from tidemark.materialized.planning.graph import Node, ancestors, due, levels, reads_itself, roots
from tidemark.materialized.planning.shape import rows_shape
from tidemark.materialized.planning.states import ViewState, is_late, state_of
from tidemark.model.streams import TableRef
from tidemark.model.views import ViewQuery

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SCHEMA = json.dumps({"type": "struct", "fields": []})


def view(name: str, lag: timedelta | None = None, *, age: timedelta | None = MINUTE, **more: object) -> KeptView:
    """A dynamic table; without a lag it is one of DOWNSTREAM. `age`: None before its first refresh."""
    values = {
        "kind": KeptKind.DYNAMIC_TABLE,
        "target_lag": TargetLag(lag),
        "fresh_at": None if age is None else NOW - age,
        **more,
    }
    return KeptView(
        uid=f"uid of {name}",
        name=name,
        text="SELECT 1",
        kept=TableRef(name, f"/kept/{name}", f"id of {name}"),
        shape=rows_shape(ViewQuery(name, "SELECT 1", SCHEMA, (), {}, "d")),
        stream=f"stream of {name}",
        created_at=NOW,
        **values,  # type: ignore[arg-type]
    )


def node(one: KeptView, *reads: str, **more: object) -> Node:
    bases = tuple(name if name.startswith("/") else f"/kept/{name}" for name in reads)
    return Node(one, bases, **more)  # type: ignore[arg-type]


def names(nodes: object) -> list[str]:
    return [one.view.name for one in nodes]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("lag", "age", "expected", "is_due"),
    [
        (10 * MINUTE, 9 * MINUTE, timedelta(), False),
        (10 * MINUTE, 11 * MINUTE, timedelta(), True),
        (10 * MINUTE, 8 * MINUTE, MINUTE, False),
        (10 * MINUTE, 8 * MINUTE, 2 * MINUTE, True),  # a refresh of the next run would end too late
        (10 * MINUTE, 10 * MINUTE, timedelta(), True),
        (10 * MINUTE, None, timedelta(), True),
        (None, timedelta(days=1), timedelta(), False),  # nobody reads it
    ],
)
def test_a_table_is_due_if_a_refresh_would_end_past_its_lag(
    lag: timedelta | None, age: timedelta | None, expected: timedelta, is_due: bool
) -> None:
    nodes = [node(view("t", lag, age=age), "/base", expected=expected)]
    assert names(due(nodes, NOW)) == (["t"] if is_due else [])


@pytest.mark.parametrize("every", [MINUTE, 7 * MINUTE])
def test_a_table_never_shows_more_than_its_lag_if_the_runs_come_as_often_as_said(every: timedelta) -> None:
    now, shown, takes, seen = NOW, NOW, 2 * MINUTE, []
    for _ in range(60):
        now += every
        table = replace(view("t", 20 * MINUTE), fresh_at=shown)
        if due([node(table, "/base", expected=takes)], now, runs_every=every):
            seen.append(now + takes - shown)
            shown = now
    assert seen
    assert max(seen) <= 20 * MINUTE


def test_downstream_is_due_with_its_readers_and_young_bases_are_refreshed_with_them() -> None:
    nodes = [
        node(view("downstream"), "/base"),
        node(view("young", timedelta(days=1)), "/base"),
        node(view("reader", MINUTE, age=2 * MINUTE), "downstream", "young"),
        node(view("other", timedelta(days=1)), "/base"),
    ]
    assert names(due(nodes, NOW)) == ["downstream", "young", "reader"]


def test_a_materialized_view_is_due_if_a_base_has_changed_and_is_no_base_of_a_wave() -> None:
    kind = {"kind": KeptKind.MATERIALIZED_VIEW, "target_lag": None}
    changed, same = node(view("changed", **kind), "/base"), node(view("same", **kind), "/base", changed=False)
    reader = node(view("reader", MINUTE, age=2 * MINUTE), "same")
    assert names(due([changed, same, reader], NOW)) == ["changed", "reader"]


def test_a_materialized_view_reads_dynamic_tables_as_they_are() -> None:
    kind = {"kind": KeptKind.MATERIALIZED_VIEW, "target_lag": None}
    table = node(view("table", timedelta(days=1), suspended="by ann"), "/base")
    reader = node(view("reader", **kind), "table")
    assert names(due([table, reader], NOW)) == ["reader"]
    assert [names(level) for level in levels([reader, table])] == [["table"], ["reader"]]


def test_a_materialized_view_refreshes_the_tables_that_wait_for_it() -> None:
    kind = {"kind": KeptKind.MATERIALIZED_VIEW, "target_lag": None}
    nodes = [
        node(view("first"), "/base"),
        node(view("daily", timedelta(days=1)), "/base"),
        node(view("second"), "first", "daily", changed=False),
        node(view("reader", **kind), "second", changed=False),
        node(view("apart", timedelta(days=1)), "second", changed=False),
    ]
    assert names(due(nodes, NOW)) == ["first", "daily", "second", "reader"]  # all as of one time
    assert names(ancestors(nodes, nodes[3:4])) == ["first", "daily", "second", "reader"]
    still = [replace(one, changed=one.view.name == "daily") for one in nodes]
    assert names(due(still, NOW)) == []  # a table with a lag of its own makes nobody due
    stopped = [node(view("first", suspended="by ann"), "/base"), *nodes[1:]]
    assert names(due(stopped, NOW)) == []
    assert names(ancestors(stopped, nodes[3:4])) == ["reader"]


def test_an_event_makes_all_due_that_read_what_has_changed() -> None:
    nodes = [
        node(view("first"), "/base"),
        node(view("second", timedelta(days=1)), "first", changed=False),
        node(view("apart", timedelta(days=1)), "/other", changed=False),
    ]
    assert names(due(nodes, NOW)) == []
    assert names(due(nodes, NOW, if_changed=True)) == ["first", "second"]


def test_a_suspended_table_stops_all_that_read_it_and_nobody_else() -> None:
    late = 2 * MINUTE
    nodes = [
        node(view("stopped", MINUTE, age=late, suspended="by ann"), "/base"),
        node(view("reader", MINUTE, age=late), "stopped"),
        node(view("readers_reader", MINUTE, age=late), "reader"),
        node(view("apart", MINUTE, age=late), "/base"),
    ]
    assert names(due(nodes, NOW)) == ["apart"]


def test_levels_put_bases_before_their_readers() -> None:
    nodes = [
        node(view("d"), "b", "c"),
        node(view("b"), "a"),
        node(view("c"), "/base"),
        node(view("a"), "/base"),
    ]
    assert [names(level) for level in levels(nodes)] == [["c", "a"], ["b"], ["d"]]
    assert names(ancestors(nodes, [nodes[1]])) == ["b", "a"]
    assert roots(nodes) == ("/base",)


def test_a_query_that_would_read_its_own_result_is_found() -> None:
    nodes = [node(view("a"), "/base"), node(view("b"), "a")]
    assert reads_itself(nodes, "uid of a", ["/kept/b"])
    assert not reads_itself(nodes, "uid of b", ["/kept/a"])


def test_the_state_of_a_view_is_the_worst_that_is_known() -> None:
    assert state_of(view("v")) is ViewState.ACTIVE
    assert state_of(view("v", age=None)) is ViewState.INITIALIZING
    assert state_of(view("v", problem="p")) is ViewState.FAILING
    assert state_of(view("v", suspended="by ann")) is ViewState.SUSPENDED
    assert state_of(view("v", suspended="s", problem="p")) is ViewState.BROKEN
    assert is_late(view("v", MINUTE, age=2 * MINUTE), NOW)
    assert not is_late(view("v", MINUTE, age=2 * MINUTE, suspended="s"), NOW)


def test_only_columns_that_the_query_names_count() -> None:
    query = ViewQuery("v", "SELECT `a b`, Price FROM tidemark_base_0", SCHEMA, (), {}, "d")

    def schema(**columns: object) -> str:
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {"c": 1}} for name, kind in columns.items()
        ]
        return json.dumps({"type": "struct", "fields": fields})

    read = columns_read(query, schema(**{"a b": "long", "price": "long", "note": "string"}))
    assert read == {"a b": '"long"', "price": '"long"'}
    assert changed_column(read, schema(**{"a b": "long", "PRICE": "long", "more": "int"})) is None
    assert changed_column(read, schema(price="long")) == "its column a b is gone"
    changed = changed_column(read, schema(**{"a b": "long", "price": "decimal(12,2)"}))
    assert changed == "its column price has the type decimal(12,2), and had long"


def test_the_columns_of_a_star_count_as_the_query_had_them() -> None:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("ID", "rank")]
    result = json.dumps({"type": "struct", "fields": fields})
    query = ViewQuery("v", "SELECT *, rank() OVER w AS rank FROM tidemark_base_0", result, (), {}, "d")
    base = json.dumps({"type": "struct", "fields": [{**fields[0], "name": "id"}, {**fields[0], "name": "later"}]})
    assert columns_read(query, base) == {"id": '"long"'}


def test_a_view_is_due_once_a_person_has_asked_but_not_while_it_is_suspended() -> None:
    nodes = [
        node(view("fresh", timedelta(days=1)), "/base"),
        node(view("asked", asked_at=NOW), "fresh"),
        node(view("seen", kind=KeptKind.MATERIALIZED_VIEW, target_lag=None, asked_at=NOW), "/base", changed=False),
        node(view("off", timedelta(days=1), asked_at=NOW, suspended="by ann"), "/base"),
    ]
    assert names(due(nodes, NOW)) == ["fresh", "asked", "seen"]
