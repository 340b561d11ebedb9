"""`airflow tidemark streams export | import`: streams and their offsets as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import WHY, acting, kept_by, me
from tidemark.cli._answers import CONNECTION, errors_in_words, file_errors_in_words
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.streams.worker.transfer import ImportedStream

__all__ = ["stream_transfers"]

_STREAMS = Arg(  # type: ignore[no-untyped-call]
    ("--stream",), help="A stream to export (default: all)", nargs="+", action="extend", metavar="NAME", dest="streams"
)
_TO_FILE = Arg(("--output",), help="The file to write (default: stdout)", metavar="FILE")  # type: ignore[no-untyped-call]
_FROM_FILE = Arg(("file",), help="File that `export` wrote; - for stdin")  # type: ignore[no-untyped-call]
_OR_REPLACE = Arg(  # type: ignore[no-untyped-call]
    ("--or-replace",), help="Replace streams of the same names, whose offsets are lost", action="store_true"
)
_IF_NOT_EXISTS = Arg(  # type: ignore[no-untyped-call]
    ("--if-not-exists",), help="Keep streams of the same names and their offsets", action="store_true"
)
_NO_CHECK = Arg(  # type: ignore[no-untyped-call]
    ("--no-check",), help="Do not look into the logs of the sources", action="store_true"
)
_NEW_IDENTITY = Arg(  # type: ignore[no-untyped-call]
    ("--new-identity",), help="Import copies that are used beside the exported streams", action="store_true"
)
_DRY_RUN = Arg(  # type: ignore[no-untyped-call]
    ("--dry-run",), help="Check everything and show what would be done; store nothing", action="store_true"
)


def stream_transfers() -> tuple[ActionCommand, ...]:
    """Out of a control store and into another one."""
    how = (_OR_REPLACE, _IF_NOT_EXISTS, _DRY_RUN, _NO_CHECK, _NEW_IDENTITY)
    return (
        ActionCommand(
            name="export",
            help="Write streams and their offsets as JSON",
            func=export_streams,
            args=(_STREAMS, _TO_FILE, CONNECTION, ARG_VERBOSE),
        ),
        ActionCommand(
            name="import",
            help="Create exported streams in this control store, all or none, each at its exported offset",
            func=import_streams,
            args=(_FROM_FILE, *how, WHY, CONNECTION, ARG_VERBOSE),
        ),
    )


@suppress_logs_and_warning
def export_streams(args: Namespace) -> None:
    """JSON to stdout or a file; streams that an open transaction holds are named on stderr. Changes nothing."""
    from tidemark.streams.worker.transfer import export_streams as export

    with errors_in_words():
        document = export(TidemarkHook(args.conn_id).open_store(), args.streams)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        sys.stdout.write(text)
    else:
        with file_errors_in_words(args.output):
            Path(args.output).write_text(text, encoding="utf-8")
    for exported in document["streams"]:
        if exported["open_transaction"] is not None:
            held = f"{exported['stream']['name']} is held by the open transaction {exported['open_transaction']}"
            print(f"{held}: its window is not in the exported offset.", file=sys.stderr)


@acting
def import_streams(args: Namespace) -> None:
    """One line per stream; all of them are stored, or none. With --if-not-exists a second run changes nothing."""
    from tidemark.streams.worker.transfer import import_streams as bring_in

    with file_errors_in_words(args.file):
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        imported = bring_in(
            kept_by(hook.open_store(), args, "stream", "import", or_replace=args.or_replace),
            text,
            who=me(),
            tables=hook.open_table,
            or_replace=args.or_replace,
            if_not_exists=args.if_not_exists,
            dry_run=args.dry_run,
            check_sources=not args.no_check,
            new_identity=args.new_identity,
        )
    for stream in imported:
        print(_said_of(stream, dry_run=args.dry_run))


def _said_of(stream: ImportedStream, *, dry_run: bool) -> str:
    identity = "the identity that was exported" if stream.same_identity else "an identity of its own"
    said = f"{stream.name}: {'would be ' if dry_run else ''}{stream.fate.value}, at {stream.version}, with {identity}"
    held = stream.open_transaction
    return said if held is None else f"{said}; when it was exported, the open transaction {held} held it"
