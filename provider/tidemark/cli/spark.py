"""`airflow tidemark spark`: the warm Spark of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ARG_OUTPUT, ARG_VERBOSE, ActionCommand, Arg
from airflow.utils.cli import suppress_logs_and_warning

from tidemark.cli._acts import acting
from tidemark.cli._answers import CONNECTION, errors_in_words, print_rows
from tidemark.hooks.tidemark import TidemarkHook

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from tidemark.warm_spark.home import StartingServer
    from tidemark.warm_spark.records import ServerRecord

__all__ = ["spark_commands"]

_NOW = Arg(("--now",), help="Kill it, with the jobs that it runs", action="store_true")  # type: ignore[no-untyped-call]


def spark_commands() -> list[ActionCommand]:
    """Start, list and end the warm Spark of this host; tasks start it by themselves."""
    shared = (CONNECTION, ARG_OUTPUT, ARG_VERBOSE)
    return [
        ActionCommand(
            name="start", help="Start the warm Spark of this host, if it does not run", func=start, args=shared
        ),
        ActionCommand(name="status", help="List the warm Sparks of this user on this host", func=status, args=shared),
        ActionCommand(
            name="stop",
            help="End the warm Sparks of this user on this host, each after its jobs",
            func=stop,
            args=(_NOW, *shared),
        ),
    ]


@acting
def start(args: Namespace) -> None:
    """The server for the settings of the connection, in one row. A second run finds it."""
    from tidemark.hooks.spark_job import SparkJob

    with errors_in_words():
        record = SparkJob(TidemarkHook(args.conn_id).settings).warm_spark().start(say=lambda text: None)
    print_rows([_row(record, in_use=True)], args.output)


@suppress_logs_and_warning
def status(args: Namespace) -> None:
    """A row for each server that lives, the newest of a home first. `retiring`: it takes no new job. `starting`: it
    does not listen yet.
    """
    with errors_in_words():
        rows = [_starting_row(server) for server in _starting(args.conn_id)]
        rows += [_row(record, in_use=in_use) for record, in_use in _living(args.conn_id)]
    print_rows(rows, args.output)


@acting
def stop(args: Namespace) -> None:
    """Ends the servers, those of the status list. Jobs that they run are waited for by them, not by this command. A
    starting server is killed with `--now`, and otherwise stays for the task that waits for it.
    """
    from tidemark.warm_spark.home import ServerHome, end_server, end_starting

    with errors_in_words():
        starting = list(_starting(args.conn_id))
        for server in starting if args.now else ():
            end_starting(server.place)
        living = list(_living(args.conn_id))
        for record, _ in living:
            ServerHome(record.place.parent).retire(record)
            if args.now:
                end_server(record)
    rows = [_starting_row(server) for server in starting]
    print_rows([*rows, *(_row(record, in_use=False) for record, _ in living)], args.output)


def _living(conn_id: str) -> Iterator[tuple[ServerRecord, bool]]:
    """(server, whether it takes jobs) of each server that lives."""
    from tidemark.hooks.warm_spark import homes
    from tidemark.warm_spark.home import living_servers

    yield from living_servers(homes(TidemarkHook(conn_id).settings))


def _starting(conn_id: str) -> Iterator[StartingServer]:
    from tidemark.hooks.warm_spark import homes
    from tidemark.warm_spark.home import starting_servers

    yield from starting_servers(homes(TidemarkHook(conn_id).settings))


def _starting_row(server: StartingServer) -> dict[str, Any]:
    from tidemark.warm_spark.home import LOG, is_starting

    return {
        "state": "starting" if is_starting(server.place) else "ended",
        "since": server.since.isoformat(timespec="seconds"),
        "process": server.process_id,
        "address": None,
        "jobs": None,
        "heap_mb": None,
        "log": str(server.place / LOG),
    }


def _row(record: ServerRecord, *, in_use: bool) -> dict[str, Any]:
    from tidemark.warm_spark.home import LOG, heap_in_use, is_alive
    from tidemark.warm_spark.slots import busy_slots

    state = "running" if in_use else "retiring"
    return {
        "state": state if is_alive(record) else "ended",
        "since": record.started_at.isoformat(timespec="seconds"),
        "process": record.process_id,
        "address": record.address,
        "jobs": f"{busy_slots(record.place, record.order.slots)} of {record.order.slots}",
        "heap_mb": heap_in_use(record.place) >> 20 or None,
        "log": str(record.place / LOG),
    }
