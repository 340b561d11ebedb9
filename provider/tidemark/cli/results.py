"""`airflow tidemark results …`: the answers that queries may reuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import acting
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.results.model.answers import StoredAnswer

__all__ = ["result_cache", "result_commands"]

_TABLE = Arg(("--table",), help="Only answers that read this table, by its name or path", metavar="TABLE")  # type: ignore[no-untyped-call]
_DRY_RUN = Arg(("--dry-run",), help="Show what would be cleared; clear nothing", action="store_true")  # type: ignore[no-untyped-call]
_SHOWN = 80  # characters of a query in a list


def result_commands() -> tuple[ActionCommand, ...]:
    """Listing and clearing answers. Neither needs Spark."""
    return (
        ActionCommand(
            name="list",
            help="List the answers that may be reused, the last used first",
            func=list_results,
            args=(_TABLE, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="clear",
            help="Stop reusing the stored answers; their files are removed an hour later",
            func=clear_results,
            args=(_TABLE, _DRY_RUN, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


def result_cache(hook: TidemarkHook) -> Any:
    """The cache of the connection."""
    from tidemark.results.worker.cache import ResultCache

    return ResultCache(hook.open_store(), hook.settings.workspace, hook.settings.storage_options)


@suppress_logs_and_warning
def list_results(args: Namespace) -> None:
    """One row per answer: its query, tables, rows, bytes, and the times of its life."""
    with errors_in_words():
        _, found = _found(args)
    print_rows([_row(answer) for answer in found], args.output)


@acting
def clear_results(args: Namespace) -> None:
    """One row per answer, with `done`. A second run finds none."""
    from tidemark.results.worker.cache import forget

    with errors_in_words():
        cache, found = _found(args)
        if not args.dry_run:
            forget(cache, found)
    print_rows([{**_row(answer), "done": not args.dry_run} for answer in found], args.output)


def _found(args: Namespace) -> tuple[Any, list[StoredAnswer]]:
    from tidemark.results.store.cached_results import live

    hook = TidemarkHook(args.conn_id)
    cache = result_cache(hook)
    path = None if args.table is None else hook.table_path(args.table)
    now = cache.store.clock()
    answers = [one for one in cache.store.read(live) if one.expires_at > now]
    return cache, [one for one in answers if path is None or path in {leaf.path for leaf in one.tables}]


def _row(answer: StoredAnswer) -> dict[str, Any]:
    text = " ".join(answer.text.split())
    return {
        "query": text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…",
        "tables": ", ".join(f"{leaf.name}@{leaf.version}" for leaf in answer.tables),
        "rows": answer.written.rows,
        "bytes": answer.written.size,
        "created": answer.created_at.isoformat(timespec="seconds"),
        "used": answer.last_used_at.isoformat(timespec="seconds"),
        "expires": answer.expires_at.isoformat(timespec="seconds"),
        "key": answer.key,
    }
