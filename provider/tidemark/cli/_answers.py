"""What all commands share: the connection, answers in the format that was asked for, and errors in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from airflow.cli.cli_config import Arg

from tidemark.errors import TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID

__all__ = ["CONNECTION", "errors_in_words", "file_errors_in_words", "print_facts", "print_rows"]

CONNECTION = Arg(  # type: ignore[no-untyped-call]
    ("--conn-id",), help=f"Tidemark connection (default: {DEFAULT_CONN_ID})", default=DEFAULT_CONN_ID
)


def print_rows(rows: Sequence[dict[str, Any]], output: str) -> None:
    """A table, JSON, YAML or plain text, as `--output` says."""
    from airflow.cli.simple_table import AirflowConsole

    AirflowConsole().print_as(data=rows, output=output)


def print_facts(facts: dict[str, Any], parts: Mapping[str, Sequence[dict[str, Any]]], output: str) -> None:
    """Facts of one thing, then a table of each of its parts; as JSON and YAML one document that has the parts, too."""
    if output in ("json", "yaml"):
        print_rows([{**facts, **parts}], output)
        return
    print_rows([{"property": name, "value": value} for name, value in facts.items()], output)
    for rows in parts.values():
        print_rows(rows, output)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Errors of our tree end the command with their message and exit code 1, without a traceback."""
    try:
        yield
    except TidemarkError as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error


@contextmanager
def file_errors_in_words(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{file}: {error}") from error
