"""What Spark raises, as errors of ours: a file that it could not read, else the first words that say what failed."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemark.errors import ConstraintViolated, DataFileUnreadable, JobFailed, TidemarkError

__all__ = ["named_failure", "read_failures_by"]

Parser = Callable[[str], TidemarkError | None]

_PARSERS: list[Parser] = []

_UNREAD = re.compile(r"\[FAILED_READ_FILE[^\]]*\] Encountered error while reading file (.+?)\.?\s*(?: SQLSTATE|\n|\Z)")
_CONSTRAINT = re.compile(
    r"\[DELTA_(?:VIOLATE_CONSTRAINT_WITH_VALUES|NOT_NULL_CONSTRAINT_VIOLATED|EXCEED_CHAR_VARCHAR_LIMIT)\] ([^\n]+)"
)
_CAUSE = re.compile(r"^Caused by: (.+)$", re.M)
_CALL = re.compile(r"^An error occurred while calling [^\n]*\n:? ?")
_LONGEST = 600


def read_failures_by(parser: Parser) -> Parser:
    """Ask `parser` first, from now on: it knows an error that queries of its module raise. A decorator."""
    if parser not in _PARSERS:
        _PARSERS.append(parser)
    return parser


def named_failure(error: Exception) -> TidemarkError:
    """What a registered parser knows; else ConstraintViolated, DataFileUnreadable with the file and the deepest
    cause, or JobFailed.
    """
    text = _CALL.sub("", str(error).strip())
    for parser in _PARSERS:
        if (found := parser(text)) is not None:
            return found
    if broken := _CONSTRAINT.search(text):
        return ConstraintViolated(problem=broken[1].rstrip(" .:")[:_LONGEST])
    unread = _UNREAD.search(text)
    if unread:
        causes = _CAUSE.findall(text)
        return DataFileUnreadable(file=unread[1], problem=(causes[-1] if causes else "no cause was given")[:_LONGEST])
    return JobFailed(error=type(error).__name__, message=(text.splitlines() or [""])[0][:_LONGEST])
