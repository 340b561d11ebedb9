"""`airflow tidemark search …`: tables with search paths, and the costs of their upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows, shown_time
from tidemark.cli._parts import whole_number
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.search.model.jobs import Kept
    from tidemark.search.model.paths import Search

__all__ = ["search_commands"]

_TABLE = Arg(("table",), help="Name or path of the table")  # type: ignore[no-untyped-call]
_LIMIT = Arg(("--limit",), help="At most this many commits", type=whole_number(1), default=20)  # type: ignore[no-untyped-call]
_LOOK = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)


def search_commands() -> tuple[ActionCommand, ...]:
    """Lists. Neither needs Spark."""
    return (
        ActionCommand(
            name="list", help="List tables with search paths, their size and problem", func=list_tables, args=_LOOK
        ),
        ActionCommand(
            name="show",
            help="Show the commits of a table's upkeep, the newest first",
            func=show,
            args=(_TABLE, _LIMIT, *_LOOK),
        ),
    )


@suppress_logs_and_warning
def list_tables(args: Namespace) -> None:
    """One row per table."""
    from tidemark.search.worker.definitions import list_searches

    with errors_in_words():
        rows = [_row(search) for search in list_searches(TidemarkHook(args.conn_id).open_store())]
    print_rows(rows, args.output)


@suppress_logs_and_warning
def show(args: Namespace) -> None:
    """One row per commit of the upkeep."""
    from tidemark.search.worker.definitions import get_search, search_history

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        store = hook.open_store()
        search = get_search(store, hook.table_path(args.table), args.table)
        rows = [_commit(kept) for kept in search_history(store, search, args.limit)]
    print_rows(rows, args.output)


def _row(search: Search) -> dict[str, Any]:
    return {
        "table": search.table.name,
        "paths": ", ".join(path.said for path in search.paths),
        "version": search.kept_version,
        "kept_at": shown_time(search.kept_at),
        "files": search.files,
        "rows": search.rows,
        "bytes": search.size,
        "problem": search.problem,
    }


def _commit(kept: Kept) -> dict[str, Any]:
    return {
        "at": kept.at.isoformat(timespec="seconds"),
        "version": kept.mark.base_version,
        "files": kept.mark.files,
        "bytes_read": kept.mark.read,
        "rows": kept.rows,
        "bytes": kept.size,
        "seconds": round(kept.seconds, 3),
        "rebuilt": kept.mark.rebuilt,
    }
