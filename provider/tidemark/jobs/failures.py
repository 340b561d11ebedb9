"""Spark's errors as errors of our tree: a file that it could not read, else the first words about the cause."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemark.errors import ConstraintViolated, DataFileUnreadable, DriverJvmNeeded, JobFailed, TidemarkError

__all__ = ["named_failure", "read_failures_by"]

Parser = Callable[[str], TidemarkError | None]

_PARSERS: list[Parser] = []

_UNREAD = re.compile(r"\[FAILED_READ_FILE[^\]]*\] Encountered error while reading file (.+?)\.?\s*(?: SQLSTATE|\n|\Z)")
_CONSTRAINT = re.compile(
    r"\[DELTA_(?:VIOLATE_CONSTRAINT_WITH_VALUES|NOT_NULL_CONSTRAINT_VIOLATED|EXCEED_CHAR_VARCHAR_LIMIT)\] ([^\n]+)"
)
_CAUSE = re.compile(r"^Caused by: (.+)$", re.M)
_CALL = re.compile(r"^An error occurred while calling [^\n]*\n:? ?")
_NO_JVM = re.compile(r"\[JVM_ATTRIBUTE_NOT_SUPPORTED\] Attribute `(\w+)`")
_LONGEST = 600


def read_failures_by(parser: Parser) -> Parser:
    """A decorator that registers `parser` for errors of its module's queries. It is asked before others."""
    if parser not in _PARSERS:
        _PARSERS.append(parser)
    return parser


def named_failure(error: Exception) -> TidemarkError:
    """The error of a registered parser, else ConstraintViolated, DataFileUnreadable with file and deepest cause,
    DriverJvmNeeded, or JobFailed.
    """
    text = _CALL.sub("", str(error).strip())
    for parser in _PARSERS:
        if (found := parser(text)) is not None:
            return found
    if broken := _CONSTRAINT.search(text):
        return ConstraintViolated(problem=broken[1].rstrip(" .:")[:_LONGEST])
    if asked := _NO_JVM.search(text):
        return DriverJvmNeeded(attribute=asked[1])
    unread = _UNREAD.search(text)
    if unread:
        causes = _CAUSE.findall(text)
        return DataFileUnreadable(file=unread[1], problem=(causes[-1] if causes else "Spark gave no cause")[:_LONGEST])
    return JobFailed(error=type(error).__name__, message=(text.splitlines() or [""])[0][:_LONGEST])
