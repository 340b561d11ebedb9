"""`airflow tidemark replications discover | errors`: what a source has, and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._answers import CONNECTION, errors_in_words, print_facts, print_rows
from tidemark.cli._parts import PART, SEARCH, part_of, say_cursor, whole_number
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.replication.model.recorded_errors import RecordedError
    from tidemark.replication.model.source_discovery import DiscoveredTable, SourceDiscovery

__all__ = ["replication_looks"]

_NAME = Arg(("name",), help="Name of the replication")  # type: ignore[no-untyped-call]
_OBJECT = Arg(("--object",), help="Only errors of this table of the source: schema.table", metavar="TABLE")  # type: ignore[no-untyped-call]
_LIMIT = Arg(("--limit",), help="At most this many errors (default: 100)", type=whole_number(1), default=100)  # type: ignore[no-untyped-call]
_SOURCE = Arg(("source_conn_id",), help="Airflow connection of the source database", metavar="CONN_ID")  # type: ignore[no-untyped-call]
_SCHEMA = Arg(  # type: ignore[no-untyped-call]
    ("--schema",),
    help="Only these schemas, or tables: schema or schema.table, * for any text",
    nargs="+",
    action="extend",
    metavar="PATTERN",
)
_COLUMNS = Arg(("--columns",), help="Show the columns of each table, too", action="store_true")  # type: ignore[no-untyped-call]


def replication_looks() -> tuple[ActionCommand, ...]:
    """Commands that only look."""
    return (
        ActionCommand(
            name="discover",
            help="Show the tables of a source database, and which of them can be replicated; creates nothing",
            func=discover,
            args=(_SOURCE, _SCHEMA, SEARCH, _COLUMNS, *PART, ARG_OUTPUT, ARG_VERBOSE),
        ),
        ActionCommand(
            name="errors",
            help="List the errors of a replication and its objects, the latest first",
            func=errors,
            args=(_NAME, _OBJECT, _LIMIT, CONNECTION, ARG_OUTPUT, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def discover(args: Namespace) -> None:
    """Its facts, its problems, and a row for each table; as JSON and YAML each table has its columns. Tables that
    cannot be replicated come first. If more follow, standard error has the cursor. Each part asks the source again.
    """
    from tidemark.hooks.replication import discovered_source
    from tidemark.replication.worker.object_parts import part_of_tables

    with errors_in_words():
        found = discovered_source(args.source_conn_id, include=tuple(args.schema or ()))
        _, tables, cursor = part_of_tables(found.tables, args.search, part_of(args))
    say_cursor(cursor, "Further tables")
    document = args.output in ("json", "yaml")
    parts = {
        "problems": [{"problem": text} for text in found.problems],
        "tables": [_table(one, columns=document) for one in tables],
    }
    if args.columns and not document:
        parts["columns"] = [{"table": one.name.text, **row} for one in tables for row in _columns(one)]
    print_facts(_source(found), parts, args.output)


@suppress_logs_and_warning
def errors(args: Namespace) -> None:
    """A row for each error, equal ones counted. An error stays when the next run succeeds."""
    from tidemark.replication.worker.errors import replication_errors

    with errors_in_words():
        store = TidemarkHook(args.conn_id).open_store()
        found = replication_errors(store, args.name, object_name=args.object, limit=args.limit)
    print_rows([_error(one) for one in found], args.output)


def _source(found: SourceDiscovery) -> dict[str, Any]:
    return {
        "kind": found.kind.value,
        "database": found.names.database,
        "databases": found.names.databases,
        "schemas": found.names.schemas,
        "tables_found": len(found.tables),
        "tables_that_fit": sum(one.fits for one in found.tables),
        "ready": found.ready,
        "notices": found.notices,
        "system_id": found.system_id,
    }


def _table(one: DiscoveredTable, *, columns: bool) -> dict[str, Any]:
    facts = {
        "table": one.name.text,
        "fits": one.fits,
        "rows": one.rows,
        "key": one.schema.keys,
        "mode": one.mode.value,
        "problems": one.problems,
        "notices": one.notices,
    }
    return facts | ({"columns": _columns(one)} if columns else {})


def _columns(one: DiscoveredTable) -> list[dict[str, Any]]:
    from tidemark.replication.planning.types import delta_type, type_text

    return [
        {
            "column": column.name,
            "native": column.native,
            "unified": type_text(column.type),
            "delta": delta_type(column.type),
            "key": column.key,
            "nullable": column.nullable,
        }
        for column in one.schema.columns
    ]


def _error(one: RecordedError) -> dict[str, Any]:
    return {
        "last_seen": one.last_seen.isoformat(timespec="seconds"),
        "first_seen": one.first_seen.isoformat(timespec="seconds"),
        "count": one.count,
        "object": one.object,
        "reason": one.reason,
        "message": one.message,
        "run": one.run,
    }
