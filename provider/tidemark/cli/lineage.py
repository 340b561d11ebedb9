"""`airflow tidemark objects lineage`: tables and objects, and the flow of rows between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, shown_time
from tidemark.cli._parts import whole_number
from tidemark.control.lineage_graph import TABLE
from tidemark.control.lineage_texts import DRAWN
from tidemark.control.object_kinds import KINDS
from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.lineage_graph import Edge, Node
    from tidemark.streams.worker.object_lineage import ShownLineage

__all__ = ["lineage_command"]

_KIND = Arg(  # type: ignore[no-untyped-call]
    ("kind",), help="Kind of the object, or table; without it, all are shown", nargs="?", choices=(TABLE, *KINDS)
)
_NAME = Arg(("name",), help="Its name, its uid, or the path of a table", nargs="?")  # type: ignore[no-untyped-call]
_DEPTH = Arg(  # type: ignore[no-untyped-call]
    ("--depth",), help="How many edges up and down, 1 to 10 (default: 3)", type=int, choices=range(1, 11), default=3
)
_MOST = Arg(  # type: ignore[no-untyped-call]
    ("--limit",), help="At most this many nodes, 1 to 2000 (default: 2000)", type=whole_number(1, 2000), default=2000
)
_DRAW = Arg(("--draw",), help="Print a drawing for that program instead", choices=tuple(DRAWN))  # type: ignore[no-untyped-call]


def lineage_command() -> ActionCommand:
    """One more command of `objects`."""
    return ActionCommand(
        name="lineage",
        help="Show the tables and objects upstream and downstream of an object",
        func=show_lineage,
        args=(_KIND, _NAME, _DEPTH, _MOST, _DRAW, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
    )


@suppress_logs_and_warning
def show_lineage(args: Namespace) -> None:
    """Facts of the whole, a row per node and a row per edge. Logs of streams are waited for as by `objects list`. Exit
    code 1 if no node has the name.
    """
    from tidemark.streams.worker.object_lineage import LineageWish, read_lineage

    with errors_in_words():
        if args.kind is not None and args.name is None:
            raise InvalidArgument(argument="name", value=None, problem="give the name of the object, too")
        hook = TidemarkHook(args.conn_id)
        wish = LineageWish(args.kind, args.name, args.depth, args.limit)
        found = read_lineage(hook.open_store(), hook.open_table, wish)
    if args.draw is not None:
        print(DRAWN[args.draw](found.part))
        return
    part = found.part
    facts = {"nodes_in_all": part.total, "truncated": part.truncated}
    names = {node.key: f"{node.kind} {node.name}" for node in part.nodes}
    nodes = [_node(node, found) for node in part.nodes]
    print_facts(facts, {"nodes": nodes, "edges": [_edge(edge, found, names) for edge in part.edges]}, args.output)


def _node(node: Node, found: ShownLineage) -> dict[str, Any]:
    shown = found.objects.get(node.key)
    return {
        "kind": node.kind,
        "name": node.name,
        "state": None if shown is None else shown.state,
        "severity": None if shown is None else shown.severity.value,
        "since": None if shown is None else shown_time(shown.since),
        "owner": None if shown is None else shown.owner_dag,
        "path": node.path,
        "uid": None if shown is None else shown.uid,
    }


def _edge(edge: Edge, found: ShownLineage, names: dict[tuple[str, str], str]) -> dict[str, Any]:
    key = found.behind(edge)
    lag = None if key is None else found.objects[key]
    seconds = None if lag is None else lag.lag_seconds
    return {
        "source": names[edge.source],
        "target": names[edge.target],
        "owners": ", ".join(sorted(edge.dags)),
        "lag_seconds": None if seconds is None else round(seconds),
        "lag": None if lag is None else lag.lag_words,
    }
