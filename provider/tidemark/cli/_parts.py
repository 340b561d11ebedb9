"""The shared options of lists: a part of the rows, by the names that the routes' arguments have."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow.cli.cli_config import Arg

if TYPE_CHECKING:
    from argparse import Namespace

    from tidemark.control.cursors import Part

__all__ = ["CURSOR", "DESCENDING", "PART", "SEARCH", "part_of", "say_cursor", "whole_number"]

_ALL = 10_000_000  # rows, if no limit is given


def whole_number(least: int, most: int = _ALL) -> Callable[[str], int]:
    """The type of an option."""

    def parsed(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return parsed


_LIMIT = Arg(("--limit",), help="At most this many rows (default: all)", type=whole_number(1))  # type: ignore[no-untyped-call]
_OFFSET = Arg(  # type: ignore[no-untyped-call]
    ("--offset",), help="How many of the first rows are left out", type=whole_number(0), default=0
)
CURSOR = Arg(  # type: ignore[no-untyped-call]
    ("--cursor",), help="The cursor of the part before, for the part that follows it", metavar="TEXT"
)
DESCENDING = Arg(("--descending",), help="In the opposite order", action="store_true")  # type: ignore[no-untyped-call]
SEARCH = Arg(("--search",), help="Only those whose names have this part, in any case", default="", metavar="TEXT")  # type: ignore[no-untyped-call]
PART = (_LIMIT, _OFFSET, CURSOR)


def part_of(args: Namespace) -> Part:
    """The part that is asked for; without a limit, all rows."""
    from tidemark.control.cursors import Part

    return Part(_ALL if args.limit is None else args.limit, args.offset, args.cursor)


def say_cursor(cursor: str | None, what: str = "Further rows") -> None:
    """The cursor for what follows on standard error, so that the output is whole; nothing on the last part."""
    if cursor is not None:
        print(f"{what}: --cursor {cursor}", file=sys.stderr)
