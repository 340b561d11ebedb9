"""`airflow tidemark views …`: materialized views and dynamic tables, their refreshes and their history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ARG_YES, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import (
    DRY_RUN,
    IF_EXISTS,
    WHY,
    acting,
    after_the_act,
    confirm,
    kept_by,
    me,
    note_done,
    runtime_of,
    store_of,
    why_of,
)
from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows, shown_time
from tidemark.cli._parts import whole_number
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import datetime

    from tidemark.materialized.model.definitions import KeptView
    from tidemark.materialized.model.refreshes import Refresh

__all__ = ["view_commands"]

_NAME = Arg(("name",), help="Name of the view")  # type: ignore[no-untyped-call]
_MODE = Arg(  # type: ignore[no-untyped-call]
    ("--mode",), help="auto, incremental or full, for this refresh (default: the view's own)", default=None
)
_BY_NEXT_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--by-next-run",), help="Start no Spark: the next run that refreshes due views takes it", action="store_true"
)
_LIMIT = Arg(("--limit",), help="At most this many refreshes", type=whole_number(1), default=20)  # type: ignore[no-untyped-call]
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def view_commands() -> tuple[ActionCommand, ...]:
    """Of views: lists and acts; each act says in its help what a second run does."""
    return (
        ActionCommand(name="list", help="List views with state, lag and problem", func=list_views, args=_LOOK),
        ActionCommand(
            name="describe", help="Show a view, its query and its kept table", func=describe, args=(_NAME, *_LOOK)
        ),
        ActionCommand(
            name="refresh",
            help="Refresh a view and the dynamic tables that it reads; a second run finds what has changed since",
            func=refresh,
            args=(_NAME, _MODE, _BY_NEXT_RUN, WHY, *_LOOK),
        ),
        ActionCommand(
            name="suspend",
            help="Stop refreshing a view; a second run changes nothing",
            func=suspend,
            args=(_NAME, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="resume",
            help="Resume refreshing a suspended view; a second run changes nothing",
            func=resume,
            args=(_NAME, WHY, DRY_RUN, *_LOOK),
        ),
        ActionCommand(
            name="drop",
            help="Drop a view and keep its table; a second run needs --if-exists",
            func=drop,
            args=(_NAME, IF_EXISTS, WHY, ARG_YES, DRY_RUN, *_LOOK),
        ),
        ActionCommand(name="history", help="Show the refreshes of a view", func=history, args=(_NAME, _LIMIT, *_LOOK)),
    )


@suppress_logs_and_warning
def list_views(args: Namespace) -> None:
    """One row per view: name, kind, state, lag, target lag, shape, problem."""
    from tidemark.materialized.worker.views import list_views as all_views

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        rows = [_row(view, store.clock()) for view in all_views(store)]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def describe(args: Namespace) -> None:
    """The view's facts."""
    from tidemark.materialized.worker.views import get_view

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        view = get_view(store, args.name)
        facts = {**_row(view, store.clock()), **_facts(view)}
    print_facts(facts, {}, args.output)


@acting
def refresh(args: Namespace) -> None:
    """One row for each view that was refreshed, the view itself last. With `--by-next-run` one row for the request."""
    from tidemark.materialized.model.definitions import RefreshMode
    from tidemark.materialized.model.refreshes import RefreshState
    from tidemark.materialized.planning.choices import choice_of
    from tidemark.materialized.worker.refresh import refresh_view
    from tidemark.materialized.worker.views import get_view
    from tidemark.model.statements import TransactionKey

    if args.by_next_run:
        _ask(args)
        return
    with errors_in_words():
        mode = None if args.mode is None else choice_of(RefreshMode, "mode", args.mode)
        runtime = runtime_of(TidemarkHook(args.conn_id))
        key = TransactionKey("client", runtime.store.new_id(), "transaction")
        view = get_view(runtime.store, args.name)
        done = refresh_view(runtime, args.name, key=key, mode=mode)
        if any(one.state is RefreshState.DONE for one in done):
            with after_the_act():
                note_done(runtime.store, args, view.kind.value, "refresh", uid=view.uid, name=view.name, mode=args.mode)
    print_rows(
        [
            {
                "view": one.view,
                "state": one.state.value,
                "how": None if one.how is None else one.how.value,
                "rows": one.rows,
                "bytes": one.bytes,
                "seconds": round(one.seconds, 1),
                "why": one.why,
            }
            for one in done
        ],
        args.output,
    )


def _ask(args: Namespace) -> None:
    """Raises SystemExit for a mode: the run takes the view's own."""
    from tidemark.errors import InvalidArgument
    from tidemark.materialized.worker.views import ask_for_refresh, get_view

    with errors_in_words():
        if args.mode is not None:
            raise InvalidArgument(argument="mode", value=args.mode, problem="the next run takes the view's own mode")
        store = TidemarkHook(args.conn_id).open_store()
        kept = kept_by(store, args, get_view(store, args.name).kind.value, "refresh")
        asked = ask_for_refresh(kept, args.name, by=me())
    print_rows([{"view": asked.name, "act": "ask", "asked_at": shown_time(asked.asked_at)}], args.output)


@acting
def suspend(args: Namespace) -> None:
    """Its readers among dynamic tables wait, too."""
    from tidemark.materialized.worker import views

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = views.get_view(store, args.name)
        kept = kept_by(store, args, before.kind.value, "suspend")
        after = views.suspend_view(kept, args.name, why=why_of(args), by=me())
    print_rows([_moved("suspend", args, before, after)], args.output)


@acting
def resume(args: Namespace) -> None:
    """The next run that refreshes views includes it."""
    from tidemark.materialized.worker import views

    with errors_in_words():
        store = store_of(TidemarkHook(args.conn_id), dry_run=args.dry_run)
        before = views.get_view(store, args.name)
        after = views.resume_view(kept_by(store, args, before.kind.value, "resume"), args.name, by=me())
    print_rows([_moved("resume", args, before, after)], args.output)


@acting
def drop(args: Namespace) -> None:
    """The kept table stays, as a table of its own. No row if there was no such view."""
    from tidemark.materialized.worker import views

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        find = views.find_view if args.if_exists else views.get_view
        before = find(store, args.name)
        if before is not None and not args.dry_run:
            confirm(f"Drop {before.name}?", yes=args.yes)
            kept = kept_by(store, args, before.kind.value, "drop")
            views.drop_view(kept, before.name, if_exists=True, by=me())
    if before is None:
        print_rows([], args.output)
        return
    row = {"view": before.name, "act": "drop", "before": _state(before), "table": before.kept.path}
    print_rows([{**row, "done": not args.dry_run}], args.output)


@suppress_logs_and_warning
def history(args: Namespace) -> None:
    """The mode that was asked for, the way and its reason, both estimates, and what the write took."""
    from tidemark.materialized.worker.views import view_history

    with errors_in_words():
        found = view_history(TidemarkHook(args.conn_id).open_store(), args.name, limit=args.limit)
    print_rows([_of_refresh(one) for one in found], args.output)


def _row(view: KeptView, now: datetime) -> dict[str, Any]:
    from tidemark.materialized.planning.lags import lag_in_words
    from tidemark.materialized.planning.states import lag_of

    lag = lag_of(view, now)
    return {
        "name": view.name,
        "kind": view.kind.value,
        "state": _state(view),
        "lag": None if lag is None else round(lag.total_seconds(), 1),
        "target_lag": lag_in_words(view.target_lag),
        "shape": view.shape.shape.value,
        "problem": view.suspended or view.problem,
    }


def _facts(view: KeptView) -> dict[str, Any]:
    return {
        "why_in_full": view.shape.why_in_full,
        "note": view.shape.note,
        "refresh_mode": view.mode.value,
        "query": view.text,
        "table": view.kept.path,
        "table_version": view.kept_version,
        "fresh_at": shown_time(view.fresh_at),
        "float_sums": view.float_sums.value,
        "cluster_by": ", ".join(view.cluster_by) or None,
        "problem_run": view.problem_run,
        "asked_at": shown_time(view.asked_at),
        "comment": view.comment,
        "created_at": shown_time(view.created_at),
        "uid": view.uid,
    }


def _of_refresh(one: Refresh) -> dict[str, Any]:
    return {
        "as_of": shown_time(one.as_of),
        "state": one.state.value,
        "asked": one.asked.value,
        "how": None if one.how is None else one.how.value,
        "why": one.error or one.why,
        "incremental_bytes": one.incremental_bytes,
        "full_bytes": one.full_bytes,
        "rows": one.rows,
        "bytes": one.bytes,
        "seconds": None if one.seconds is None else round(one.seconds, 1),
        "write_seconds": None if one.write_seconds is None else round(one.write_seconds, 1),
        "versions": json.dumps(dict(one.versions)),
        "run": one.run,
    }


def _moved(act: str, args: Namespace, before: KeptView, after: KeptView) -> dict[str, Any]:
    states = {"before": _state(before), "after": _state(after)}
    return {"view": before.name, "act": act, **states, "done": not args.dry_run}


def _state(view: KeptView) -> str:
    from tidemark.materialized.planning.states import state_of

    return state_of(view).value
