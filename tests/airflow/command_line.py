"""`airflow …` as it is typed, answered by this process: one of its own takes seconds to begin."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

__all__ = ["Said", "run_airflow"]


@dataclass(frozen=True)
class Said:
    """What a process would leave."""

    returncode: int
    stdout: str
    stderr: str


def run_airflow(*arguments: str) -> Said:
    """A command that ends itself has the exit code, and the message on standard error, that Python would give it."""
    from airflow.cli.cli_parser import get_parser

    given = get_parser().parse_args(arguments)
    out, err, ended = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            given.func(given)
        except SystemExit as ending:
            ended = ending.code
    if isinstance(ended, str):
        return Said(1, out.getvalue(), f"{err.getvalue()}{ended}\n")
    return Said(ended or 0, out.getvalue(), err.getvalue())
