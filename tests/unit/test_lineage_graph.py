"""The graph of objects and tables: its nodes, its edges, the part around a node, and the texts that draw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.control.lineage_graph import MOST_DEPENDENTS, Graph, Part, around, dependents, graph_of, named, whole
from tidemark.control.lineage_texts import dot, mermaid
from tidemark.control.ties import Flow, TableAt, Tie

ORDERS, MIRROR, DAILY = (TableAt(f"shop.{name}", f"file:///lake/shop/{name}") for name in ("orders", "mirror", "daily"))
READS, WRITES, IS, KEEPS = Flow.READS, Flow.WRITES, Flow.IS, Flow.KEEPS


def graph(ties: Mapping[str, Sequence[Tie]], *ended: str, **more: str) -> Graph:
    """Objects are named like their uids."""
    live = {(kind, tie.uid): tie.uid for kind, found in ties.items() for tie in found if tie.uid not in ended}
    return graph_of({**live, **{(kind, uid): uid for kind, uid in more.items()}}, ties)


def edges(found: Graph | Part) -> set[tuple[str, str]]:
    nodes = found.nodes.values() if isinstance(found, Graph) else found.nodes
    names = {node.key: f"{node.kind} {node.name}" for node in nodes}
    return {(names[edge.source], names[edge.target]) for edge in found.edges}


def names(part: Part) -> list[str]:
    return [node.name for node in part.nodes]


def chain(count: int) -> Graph:
    """t0 → s0 → t1 → s1 → …"""
    ties = [
        tie
        for number in range(count)
        for tie in (
            Tie(f"s{number}", READS, TableAt(f"t{number}", f"/t{number}")),
            Tie(f"s{number}", WRITES, TableAt(f"t{number + 1}", f"/t{number + 1}"), "dag"),
        )
    ]
    return graph({"stream": ties})


def test_rows_flow_from_tables_to_those_who_read_them_and_on_to_targets() -> None:
    found = graph({"stream": [Tie("s", READS, ORDERS), Tie("s", WRITES, MIRROR, "a"), Tie("s", WRITES, MIRROR, "b")]})
    assert edges(found) == {("table shop.orders", "stream s"), ("stream s", "table shop.mirror")}
    assert {edge.dags for edge in found.edges} == {frozenset(), frozenset({"a", "b"})}


def test_a_kept_table_is_its_view_for_those_who_read_it() -> None:
    found = graph(
        {
            "dynamic_table": [Tie("v", IS, DAILY), Tie("v", READS, ORDERS), Tie("w", READS, DAILY)],
            "stream": [Tie("s", READS, TableAt("other name", DAILY.path))],
        }
    )
    assert edges(found) == {
        ("table shop.orders", "dynamic_table v"),
        ("dynamic_table v", "dynamic_table w"),
        ("dynamic_table v", "stream s"),
    }
    assert found.nodes["dynamic_table", "v"].path == DAILY.path


def test_a_name_without_a_path_means_the_one_table_that_has_it() -> None:
    ties = {"stream": [Tie("s", READS, ORDERS)], "pipe": [Tie("p", WRITES, TableAt("SHOP.Orders"))]}
    assert edges(graph(ties)) == {("table shop.orders", "stream s"), ("pipe p", "table shop.orders")}
    elsewhere = Tie("s", WRITES, TableAt("shop.orders", "file:///other/orders"))
    found = graph({**ties, "stream": [*ties["stream"], elsewhere]})
    assert ("table", "shop.orders") in found.nodes  # nobody knows which of the two it is
    assert found.nodes["table", "shop.orders"].path is None


def test_objects_that_have_ended_have_no_ties() -> None:
    ties = {"consumer_group": [Tie("g", READS, ("change_stream", "c"))], "change_stream": [Tie("c", READS, ORDERS)]}
    assert len(graph(ties).edges) == 2
    assert edges(graph(ties, "c")) == set()
    assert edges(graph(ties, "g")) == {("table shop.orders", "change_stream c")}


def test_an_object_without_a_tie_is_a_node_if_its_kind_has_any() -> None:
    found = graph({"stream": [], "pipe": []}, stream="alone", clustered_table="no flow")
    assert list(found.nodes) == [("stream", "alone")]


def test_a_part_has_what_is_up_and_down_to_the_depth_the_nearest_first() -> None:
    found = chain(10)
    (centre,) = named(found, "stream", "S5")
    assert names(around(found, centre.key, depth=1, most=100)) == ["s5", "t5", "t6"]
    part = around(found, centre.key, depth=3, most=100)
    assert set(names(part)) == {"t4", "s4", "t5", "s5", "t6", "s6", "t7"}
    assert (part.total, part.truncated, len(part.edges)) == (7, False, 6)


def test_siblings_are_no_part_of_what_is_up_and_down() -> None:
    found = graph({"stream": [Tie("s", READS, ORDERS), Tie("other", READS, ORDERS)]})
    assert set(names(around(found, ("stream", "s"), depth=10, most=100))) == {"s", "shop.orders"}


def test_of_too_many_nodes_the_nearest_are_kept_and_it_says_so() -> None:
    found = chain(10)
    part = around(found, ("stream", "s5"), depth=10, most=3)
    assert (names(part), part.truncated, part.total) == (["s5", "t5", "t6"], True, 20)
    assert len(part.edges) == 2
    all_of_them = whole(found, most=4)
    assert (len(all_of_them.nodes), len(all_of_them.edges), all_of_them.total) == (4, 3, 21)


def test_a_circle_ends() -> None:
    found = graph({"stream": [Tie("s", READS, ORDERS), Tie("s", WRITES, ORDERS, "a")]})
    assert len(around(found, ("stream", "s"), depth=10, most=10).nodes) == 2
    assert len(whole(found, most=10).edges) == 2


def test_a_node_is_found_by_name_in_any_case_by_uid_and_by_path() -> None:
    ties = {"stream": [Tie("u1", READS, ORDERS), Tie("u2", READS, TableAt("SHOP.orders", "file:///old/orders"))]}
    found = graph_of({("stream", "u1"): "Deliver", ("stream", "u2"): "deliver"}, ties)
    assert [node.key[1] for node in named(found, "stream", "deliver")] == ["u2"]
    assert [node.key[1] for node in named(found, "stream", "DELIVER")] == ["u1", "u2"]
    assert [node.key[1] for node in named(found, "stream", "u1")] == ["u1"]
    assert [node.name for node in named(found, "table", "file:///old/orders")] == ["SHOP.orders"]
    assert named(found, "pipe", "deliver") == ()


keys = st.integers(min_value=0, max_value=8)


@given(st.lists(st.tuples(keys, st.sampled_from([READS, WRITES]), keys)), keys, st.integers(1, 10), st.integers(1, 20))
def test_every_part_is_a_part_of_the_whole(
    drawn: list[tuple[int, Flow, int]], start: int, depth: int, most: int
) -> None:
    ties = {"stream": [Tie(f"s{one}", flow, TableAt(f"t{other}", f"/t{other}")) for one, flow, other in drawn]}
    found = graph(ties, stream=f"s{start}")
    part = around(found, ("stream", f"s{start}"), depth=depth, most=most)
    assert part.nodes[0].key == part.centre == ("stream", f"s{start}")
    assert len(part.nodes) == min(most, part.total)
    assert edges(part) <= edges(whole(found, most=1000))
    larger = around(found, ("stream", f"s{start}"), depth=depth + 1, most=1000)
    assert {node.key for node in part.nodes} <= {node.key for node in larger.nodes}
    assert whole(found, most=1000).total == len(found.nodes)


HTML = '<img src=x onerror="alert(1)"> & #1;'


@pytest.mark.parametrize("draw", [mermaid, dot])
def test_drawings_have_each_name_as_text(draw: object) -> None:
    ties = {"stream": [Tie("s", READS, TableAt(HTML, "/x")), Tie("s", WRITES, TableAt('a "quoted"\nname', "/y"))]}
    found = draw(whole(graph(ties), most=10))  # type: ignore[operator]
    lines = found.splitlines()
    assert len(lines) == {mermaid: 6, dot: 9}[draw]  # type: ignore[index]
    assert all(line.count('"') - line.count('\\"') in (0, 2) for line in lines)
    if draw is mermaid:
        assert "<" not in found.replace("-->", "")


def test_dependents_are_all_that_get_rows_from_a_node_each_once_and_not_the_node_itself() -> None:
    """Also around a circle."""
    assert [dependents(chain(3), ("stream", f"s{number}")) for number in range(3)] == [5, 3, 1]
    assert dependents(chain(3), ("table", "/t3")) == 0
    ties = [Tie("a", READS, ORDERS), Tie("a", WRITES, MIRROR), Tie("b", READS, MIRROR), Tie("b", WRITES, ORDERS)]
    assert dependents(graph({"stream": ties}), ("stream", "a")) == 3


def test_a_key_that_is_no_node_has_no_number_of_dependents() -> None:
    found = graph({"stream": [Tie("s", READS, ORDERS)]}, "s")
    assert [dependents(found, key) for key in (("stream", "s"), ("clustered_table", "c"), ("", ""))] == [None] * 3


def test_a_keeper_is_no_node_and_has_the_dependents_of_its_table() -> None:
    """That table may be a view, and a table without rows that flow is a node."""
    found = graph(
        {
            "stream": [Tie("s", READS, ORDERS), Tie("s", WRITES, MIRROR)],
            "dynamic_table": [Tie("v", IS, DAILY)],
            "clustered_table": [Tie("c", KEEPS, ORDERS), Tie("d", KEEPS, DAILY), Tie("ended", KEEPS, MIRROR)],
            "search_optimization": [Tie("f", KEEPS, ORDERS), Tie("alone", KEEPS, TableAt("lone", "/lone"))],
        },
        "ended",
    )
    assert {node.kind for node in found.nodes.values()} == {"stream", "dynamic_table", "table"}
    keys = [("clustered_table", "c"), ("search_optimization", "f"), ("clustered_table", "d")]
    assert [dependents(found, key) for key in keys] == [2, 2, 0]
    assert dependents(found, ("search_optimization", "alone")) == 0
    assert dependents(found, ("clustered_table", "ended")) is None
    for kind, name, seen in (
        ("clustered_table", "C", ORDERS.name),
        ("search_optimization", "f", ORDERS.name),
        ("clustered_table", "d", "v"),
        ("search_optimization", "/lone", "lone"),
    ):
        assert [node.name for node in named(found, kind, name)] == [seen]
    assert edges(found) == {("table shop.orders", "stream s"), ("stream s", "table shop.mirror")}


@pytest.mark.parametrize(
    ("count", "counted"),
    [
        (MOST_DEPENDENTS - 1, MOST_DEPENDENTS - 1),
        (MOST_DEPENDENTS, MOST_DEPENDENTS),
        (5 * MOST_DEPENDENTS, MOST_DEPENDENTS),
    ],
)
def test_no_more_than_1000_dependents_are_counted(count: int, counted: int) -> None:
    ties = [Tie("s", WRITES, TableAt(f"t{number}", f"/t{number}")) for number in range(count)]
    assert dependents(graph({"stream": ties}), ("stream", "s")) == counted
