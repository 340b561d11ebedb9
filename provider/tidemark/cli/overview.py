"""`airflow tidemark overview`: all objects that need attention, as the page and its route show them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows, shown_time
from tidemark.cli._parts import CURSOR, SEARCH, say_cursor, whole_number
from tidemark.control.lineage_graph import dependents
from tidemark.control.object_kinds import KINDS
from tidemark.hooks.advised_commands import commands_for
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from tidemark.control.lineage_graph import Graph
    from tidemark.streams.worker.object_needs import Need

__all__ = ["overview_command"]

_OF_KIND = Arg(("--kind",), help="Only objects of this kind", choices=tuple(KINDS))  # type: ignore[no-untyped-call]
_LIMIT = Arg(("--limit",), help="At most this many objects (default: all)", type=whole_number(1))  # type: ignore[no-untyped-call]


def overview_command() -> ActionCommand:
    """The only command that is no part of a group."""
    return ActionCommand(
        name="overview",
        help="List the objects that need attention, the worst first: reason, time and remedy",
        func=overview,
        args=(_OF_KIND, SEARCH, _LIMIT, CURSOR, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
    )


@suppress_logs_and_warning
def overview(args: Namespace) -> None:
    """One row per object: need, kind, name, state, since, reason, owner, run, dependents, what to do and the command.
    `since_seen`: since is the time of this look. `run_met`: the run met it; else it touched the object last.

    Logs are waited for as by `objects list`. If nothing needs attention, standard error says so with figures. It also
    says how many objects were not looked at, as their logs have not answered. If more follow, it has the cursor.
    """
    from tidemark.control.object_lineage import read_graph
    from tidemark.control.object_list import ObjectsWish
    from tidemark.control.object_needs import place_of_cursor
    from tidemark.streams.worker.object_needs import look_at_all, needs_page

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store, wish = hook.open_store(), ObjectsWish(kind=args.kind, search=args.search)
        after = None if args.cursor is None else place_of_cursor(args.cursor)
        known = look_at_all(store, hook.open_table)
        page = store.read(lambda c: needs_page(c, known, wish, after=after, limit=args.limit, now=store.clock()))
        graph = store.read(read_graph) if page.needs else None
    if page.not_looked_at:
        print(f"{_objects(page.not_looked_at)} not checked: the logs have not answered.", file=sys.stderr)
    elif not page.total:
        print(_nothing(page.kinds, narrowed=bool(args.kind or args.search)), file=sys.stderr)
    say_cursor(None if page.following is None else page.following.cursor)
    print_rows([_row(one, args.conn_id, graph) for one in page.needs], args.output)


def _objects(count: int) -> str:
    return "1 object was" if count == 1 else f"{count} objects were"


def _nothing(kinds: Mapping[str, int], *, narrowed: bool) -> str:
    return "No object that fits needs attention." if narrowed else f"Nothing needs attention: {_figures(kinds)}."


def _figures(kinds: Mapping[str, int]) -> str:
    counted = (f"{count} {kind.replace('_', ' ')}{'s' if count != 1 else ''}" for kind, count in sorted(kinds.items()))
    return ", ".join(counted) or "there is no object yet"


def _row(one: Need, conn_id: str, graph: Graph | None) -> dict[str, Any]:
    shown = one.shown
    return {
        "need": one.need,
        "kind": shown.kind,
        "name": shown.name,
        "state": shown.state,
        "severity": shown.severity.value,
        "since": shown_time(one.since),
        "since_seen": one.since_seen,
        "reason": one.reason(shown),
        "owner": shown.owner_dag,
        "run": one.run,
        "run_met": one.run_met,
        "dependents": None if graph is None else dependents(graph, (shown.kind, shown.uid)),
        "advice": one.advice.words,
        "command": "\n".join(commands_for(one.advice, conn_id)),
        "uid": shown.uid,
    }
