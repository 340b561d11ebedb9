"""`airflow tidemark ingest`: the ingest service of this host, and the tokens of its writers."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg, GroupCommand
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import acting
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.channels.model.grants import Grant
    from tidemark.channels.model.jobs import ServeIngest
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["ingest_commands"]

_NAME = Arg(("name",), help="The writer's name, which other writers see")  # type: ignore[no-untyped-call]
_TABLES = Arg(  # type: ignore[no-untyped-call]
    ("--table",), help="A table that it may write, or a pattern such as db.*; may be given again", action="append"
)
_PIPES = Arg(  # type: ignore[no-untyped-call]
    ("--pipe",), help="A pipe that it may use, or a pattern such as db.*; may be given again", action="append"
)
_HOST = Arg(("--host",), help="Address to listen on (default: 127.0.0.1)", default="127.0.0.1")  # type: ignore[no-untyped-call]
_PORT = Arg(("--port",), help="Port to listen on (default: 8790; 0: any)", type=int, default=8790)  # type: ignore[no-untyped-call]
_CERTIFICATE = Arg(("--certificate",), help="Certificate in PEM, for HTTPS", metavar="FILE")  # type: ignore[no-untyped-call]
_KEY = Arg(("--key",), help="The certificate's key in PEM", metavar="FILE")  # type: ignore[no-untyped-call]
_PROXY = Arg(  # type: ignore[no-untyped-call]
    ("--behind-proxy",), help="Something in front of the service has the certificate", action="store_true"
)
_ONLY = Arg(  # type: ignore[no-untyped-call]
    ("--only-writer",),
    help="Nobody else writes the tables; needed on S3 without a coordinating log store",
    action="store_true",
)
_EVOLVE = Arg(  # type: ignore[no-untyped-call]
    ("--evolve-schema",), help="Writers may open channels whose rows add columns", action="store_true"
)
_KEEP = Arg(  # type: ignore[no-untyped-call]
    ("--keep-hours",),
    help="Compact the written tables and remove idle channels every this many hours (default: never)",
    type=float,
    metavar="HOURS",
)
_LAG = Arg(  # type: ignore[no-untyped-call]
    ("--max-client-lag",), help="How long rows may wait in the buffer (default: 1 second)", default="1 second"
)


def ingest_commands() -> tuple[ActionCommand | GroupCommand, ...]:
    """Serve, and manage tokens."""
    shared = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)
    tokens = [
        ActionCommand(
            name="add", help="Create a token, and print it once", func=add_token, args=(_NAME, _TABLES, _PIPES, *shared)
        ),
        ActionCommand(
            name="list", help="List the tokens of writers without their values", func=list_tokens, args=shared
        ),
        ActionCommand(
            name="remove", help="Remove a token; a second run is fine", func=remove_token, args=(_NAME, *shared)
        ),
    ]
    serve_args = (_HOST, _PORT, _CERTIFICATE, _KEY, _PROXY, _LAG, _ONLY, _EVOLVE, _KEEP, CONNECTION, ARG_VERBOSE)
    return (
        ActionCommand(name="serve", help="Run the ingest service until SIGTERM", func=serve, args=serve_args),
        GroupCommand(name="tokens", help="Add, list and remove the tokens of writers", subcommands=tokens),
    )


@acting
def add_token(args: Namespace) -> None:
    """A new token, in place of an earlier one of that name. Only its hash is kept."""
    from tidemark.channels.planning.grants import with_grant
    from tidemark.channels.worker.grants import change_grants

    token = secrets.token_urlsafe(32)
    with errors_in_words():
        file = TidemarkHook(args.conn_id).settings.ingest_tokens
        now, tables, pipes = datetime.now(UTC), tuple(args.table or ()), tuple(args.pipe or ())
        grants = change_grants(file, lambda known: with_grant(known, args.name, token, tables, now, pipes))
    row = _row(grants.grants[-1])
    if args.output == "table":
        print_rows([row], args.output)
        print(token)  # a narrow terminal folds the cells of a table
    else:
        print_rows([{**row, "token": token}], args.output)


@suppress_logs_and_warning
def list_tokens(args: Namespace) -> None:
    """A row for each token."""
    from tidemark.channels.worker.grants import read_grants

    with errors_in_words():
        grants = read_grants(TidemarkHook(args.conn_id).settings.ingest_tokens).grants
    print_rows([_row(grant) for grant in grants], args.output)


@acting
def remove_token(args: Namespace) -> None:
    """The tokens that are left. Requests with the removed one are refused from the next on."""
    from tidemark.channels.planning.grants import without_grant
    from tidemark.channels.worker.grants import change_grants

    with errors_in_words():
        file = TidemarkHook(args.conn_id).settings.ingest_tokens
        grants = change_grants(file, lambda known: without_grant(known, args.name)).grants
    print_rows([_row(grant) for grant in grants], args.output)


def serve(args: Namespace) -> None:
    """Submits the service and waits for its end. After SIGTERM or Ctrl-C it commits what it has taken, then ends. Pipes
    that are created or changed are known to it within ten seconds.

    Exit code 1 if rows that it had taken could not be committed.
    """
    from tidemark.channels.planning.addresses import require_safe_address
    from tidemark.channels.worker.serving import run_service
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.spark_mode import SparkMode
    from tidemark.pipes.worker.served import kept_pipes

    with errors_in_words():
        hook = TidemarkHook(args.conn_id)
        request = _request(args, hook.settings)
        require_safe_address(request)
        job = SparkJob(replace(hook.settings, spark_mode=SparkMode.SUBMIT))
        job.require_ready()
        if job.in_cluster:
            instead = (
                "The service serves this host: name a Tidemark connection whose Spark connection has no deploy-mode."
            )
            raise NotYetSupported(feature="The ingest service in deploy mode 'cluster'", instead=instead)
        runtime = hook.runtime(job.run)
        with kept_pipes(runtime.store, hook.settings.ingest_pipes), _told_to_stop() as stop:
            served = run_service(runtime, request, on_stop=stop)
    if not served.committed:
        raise SystemExit(f"Not all rows were committed: {served.problem} Their writers send them again.")


@contextmanager
def _told_to_stop() -> Iterator[list[Path]]:
    """SIGTERM and Ctrl-C create the files of the list, which tell the job to stop. The process waits for its end."""
    files: list[Path] = []

    def stop(*_: object) -> None:
        for file in files:
            file.touch()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield files
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _request(args: Namespace, settings: TidemarkSettings) -> ServeIngest:
    from tidemark.channels.model.jobs import ServeIngest
    from tidemark.channels.planning.lag import lag_of

    lag_of(args.max_client_lag)
    if args.keep_hours is not None and not args.keep_hours > 0:
        raise InvalidArgument(argument="keep_hours", value=args.keep_hours, problem="it must be more than 0")
    return ServeIngest(
        lake_root=settings.lake_root,
        tokens_file=str(settings.ingest_tokens),
        host=args.host,
        port=args.port,
        certificate=_file(args.certificate),
        key=_file(args.key),
        behind_proxy=args.behind_proxy,
        max_client_lag=args.max_client_lag,
        only_writer=args.only_writer,
        evolve_schema=args.evolve_schema,
        keep_hours=args.keep_hours,
        pipes_file=str(settings.ingest_pipes),
    )


def _file(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _row(grant: Grant) -> dict[str, Any]:
    made = grant.created_at.isoformat(timespec="seconds")
    return {"name": grant.name, "tables": ", ".join(grant.tables), "pipes": ", ".join(grant.pipes), "created_at": made}
