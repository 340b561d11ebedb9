"""`airflow tidemark objects …`: all objects of the control store in one list, the worst first, and their histories."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.cli._parts import CURSOR, DESCENDING, PART, SEARCH, part_of, say_cursor, whole_number
from tidemark.cli.lineage import lineage_command
from tidemark.cli.runs import run_command
from tidemark.control.object_kinds import KINDS, Advice
from tidemark.control.object_list import ObjectOrder
from tidemark.hooks.advised_commands import commands_for
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.object_acts import DoneAct, ObjectAct, OfferedActs
    from tidemark.control.object_histories import ShownPart
    from tidemark.control.object_list import ShownObject

__all__ = ["object_commands"]

_OF_KIND = Arg(("--kind",), help="Only objects of this kind", choices=tuple(KINDS))  # type: ignore[no-untyped-call]
_STATE = Arg(  # type: ignore[no-untyped-call]
    ("--state",), help="Only objects in this state, or of this severity: failed, warning, waiting or ok"
)
_PROBLEMS = Arg(  # type: ignore[no-untyped-call]
    ("--problems",), help="Only objects that failed or have a warning", action="store_true"
)
_SORT = Arg(  # type: ignore[no-untyped-call]
    ("--sort",), help="The order (default: state, the worst first)", choices=[one.value for one in ObjectOrder],
    default=ObjectOrder.STATE.value,
)  # fmt: skip
_LIMIT = Arg(  # type: ignore[no-untyped-call]
    ("--limit",), help="At most this many acts (default: 50)", type=whole_number(1), default=50
)
_UID = Arg(("--uid",), help="Only acts on the object with this uid")  # type: ignore[no-untyped-call]
_KIND = Arg(("kind",), help="Kind of the object", choices=tuple(KINDS))  # type: ignore[no-untyped-call]
_NAME = Arg(  # type: ignore[no-untyped-call]
    ("name",), help="Name of the object as the list has it, or its uid"
)
_PART = Arg(("--part",), help="Only this part of the history", metavar="NAME")  # type: ignore[no-untyped-call]
_POINTS = Arg(  # type: ignore[no-untyped-call]
    ("--limit",), help="At most this many points of each part (default: 50, at most 1,000)", type=int, default=50
)
_POINT_CURSOR = Arg(  # type: ignore[no-untyped-call]
    ("--cursor",), help="From `cursors` for older points of the part, or from `newer` for newer ones", metavar="TEXT"
)


def object_commands() -> tuple[ActionCommand, ...]:
    """Of all objects: looking, which asks the control store, and the logs of streams for a bounded time."""
    return (
        ActionCommand(
            name="list",
            help="List the objects of every kind with state, lag and problem, the worst first",
            func=list_objects,
            args=(_OF_KIND, _STATE, _PROBLEMS, SEARCH, _SORT, DESCENDING, *PART, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="show",
            help="Show an object with its owner, its whole problem and its uid",
            func=show_object,
            args=(_KIND, _NAME, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="acts",
            help="List the newest acts on the page and by commands, with person and reason",
            func=list_acts,
            args=(_OF_KIND, _UID, _LIMIT, CURSOR, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="offered",
            help="List the acts that an object is offered now, with their commands and what each loses",
            func=list_offered,
            args=(_KIND, _NAME, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="history",
            help="Show the history of an object: its runs with their figures, the newest first",
            func=show_history,
            args=(_KIND, _NAME, _PART, _POINTS, _POINT_CURSOR, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        lineage_command(),
        run_command(),
    )


@suppress_logs_and_warning
def list_objects(args: Namespace) -> None:
    """One row per object: kind, name, state, severity, since, lag in seconds and in its own unit, owner, problem. If
    more follow, standard error has the cursor for them. Each part looks at the logs again.
    """
    from tidemark.control.object_list import ObjectsWish
    from tidemark.control.object_parts import part_of_objects
    from tidemark.streams.worker.object_states import list_objects as every_object

    with errors_in_words():
        wish = ObjectsWish(kind=args.kind, state=args.state, problems=args.problems, search=args.search)
        hook, sort = TidemarkHook(args.conn_id), ObjectOrder(args.sort)
        found = every_object(hook.open_store(), hook.open_table, wish)
        shown, cursor = part_of_objects(found, sort, part_of(args), descending=args.descending)
    say_cursor(cursor)
    print_rows([_row(one) for one in shown], args.output)


@suppress_logs_and_warning
def show_object(args: Namespace) -> None:
    """The same facts of one object, and what it belongs to. Exit code 1 if there is none."""
    from tidemark.streams.worker.object_states import describe_object

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        found = describe_object(hook.open_store(), hook.open_table, args.kind, args.name)
    facts = {**_row(found), "within": found.within, "uid": found.uid}
    print_facts(facts, {}, args.output)


@suppress_logs_and_warning
def list_acts(args: Namespace) -> None:
    """One row per act, the newest first: when, what, on which object, who and why. `by`: the page, or a command, whose
    person is a user of the operating system. If more acts follow, standard error has the cursor for them.
    """
    from tidemark.control.object_acts import acts_part

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        wish = {"kind": args.kind, "uid": args.uid, "limit": args.limit, "cursor": args.cursor}
        found = store.read(lambda connection: acts_part(connection, **wish))
    say_cursor(found.cursor, "Earlier acts")
    print_rows([_act_row(one) for one in found.acts], args.output)


@suppress_logs_and_warning
def list_offered(args: Namespace) -> None:
    """One row per act: its name, what it does, what it loses, its command, and its fields with their choices. Exit code
    1 if there is no such object.
    """
    from tidemark.control.object_acts import offered_now
    from tidemark.control.object_list import find

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        now = store.clock()
        found = store.read(lambda c: offered_now(c, args.kind, find(c, args.kind, args.name, now=now).uid, now))
    print_rows([_offered_row(found, act, args.conn_id) for act in found.acts], args.output)


@suppress_logs_and_warning
def show_history(args: Namespace) -> None:
    """The object, then a table for each part of its history. JSON and YAML have the parts under the route's names.
    `cursors` has a cursor for each part with further points, and `newer` one for each part with newer points. `totals`
    has the number of all points of each part that is counted. Exit code 1 if there is no such object.
    """
    from tidemark.control.object_histories import WITHOUT
    from tidemark.streams.worker.looked_histories import read_history

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        wanted = {"part": args.part, "cursor": args.cursor, "limit": args.limit}
        one, parts = read_history(hook.open_store(), hook.open_table, args.kind, args.name, **wanted)
    facts = {
        "kind": one.kind,
        "name": one.name,
        "uid": one.uid,
        "elsewhere": WITHOUT.get(one.kind),
        "cursors": {shown.part.name: shown.cursor for shown in parts if shown.cursor is not None},
        "newer": {shown.part.name: shown.newer for shown in parts if shown.newer is not None},
        "totals": {shown.part.name: shown.total for shown in parts if shown.total is not None},
    }
    print_facts(facts, {shown.part.name: _points(shown) for shown in parts}, args.output)


def _points(shown: ShownPart) -> list[dict[str, Any]]:
    names = [field.name for field in shown.part.fields]
    return [{name: _cell(point.values.get(name)) for name in names} for point in shown.points]


def _cell(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _act_row(one: DoneAct) -> dict[str, Any]:
    facts = {name: getattr(one, name) for name in ("kind", "name", "act", "who", "why", "uid")}
    by = "command" if one.by_command else "page"
    values = json.dumps(dict(one.values))
    return {"done_at": one.done_at.isoformat(timespec="seconds"), **facts, "values": values, "by": by}


def _offered_row(found: OfferedActs, act: ObjectAct, conn_id: str) -> dict[str, Any]:
    (command,) = commands_for(Advice("", (act.command,)).of(found.shown.own_name, found.shown.within), conn_id)
    fields = []
    for field in act.fields:
        choices = [choice.value for choice in found.choices.get((act.name, field.name), ())]
        fields.append(f"{field.option}: {', '.join(choices)}" if choices else field.option)
    return {"act": act.name, "words": act.words, "loses": act.loses, "command": command, "options": "; ".join(fields)}


def _row(one: ShownObject) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name,
        "state": one.state,
        "severity": one.severity.value,
        "since": shown_time(one.since),
        "lag_seconds": None if one.lag_seconds is None else round(one.lag_seconds),
        "lag": one.lag_words,
        "owner": one.owner_dag,
        "problem": one.trouble,
    }
