"""The shared parts of all commands: the connection, answers in the format that was asked for, and errors in words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from airflow.cli.cli_config import Arg
from airflow.sdk.exceptions import AirflowNotFoundException

from tidemark.errors import TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID

__all__ = ["CONNECTION", "errors_in_words", "file_errors_in_words", "print_facts", "print_rows", "shown_time"]

_CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"  # as Airflow's own commands set it
CONNECTION = Arg(  # type: ignore[no-untyped-call]
    ("--conn-id",), help=f"Tidemark connection (default: {DEFAULT_CONN_ID})", default=DEFAULT_CONN_ID
)


def print_rows(rows: Sequence[dict[str, Any]], output: str) -> None:
    """A table, JSON, YAML or plain text, as `--output` says. Texts with `[a]` or `:a:` are no markup, and texts such as
    `1e5` no numbers.
    """
    from tidemark.cli._console import TextConsole

    TextConsole(markup=False, emoji=False).print_as(data=rows, output=output)


def print_facts(facts: dict[str, Any], parts: Mapping[str, Sequence[dict[str, Any]]], output: str) -> None:
    """Facts of one thing, then a table of each of its parts. As JSON and YAML they are one document that has the parts,
    too.
    """
    if output in ("json", "yaml"):
        print_rows([{**facts, **parts}], output)
        return
    print_rows([{"property": name, "value": value} for name, value in facts.items()], output)
    for rows in parts.values():
        print_rows(rows, output)


def shown_time(time: datetime | None) -> str | None:
    """A time to the second, for a cell; None for none."""
    return None if time is None else time.isoformat(timespec="seconds")


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Errors of our tree, and a missing connection, end the command with their message and exit code 1, without a
    traceback. Connections are found where Airflow's own commands find them.
    """
    try:
        with _as_a_server():
            yield
    except (TidemarkError, AirflowNotFoundException) as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error


@contextmanager
def _as_a_server() -> Iterator[None]:
    """A process that Airflow does not know of is not shown the connections of the metadata database."""
    before = os.environ.get(_CONTEXT)
    os.environ[_CONTEXT] = before or "server"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CONTEXT]


@contextmanager
def file_errors_in_words(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{file}: {error}") from error
