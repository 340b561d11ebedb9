"""Spark's errors as errors of our tree: a file that it could not read, else the first words about the cause."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemark.errors import ConstraintViolated, DataFileUnreadable, DriverJvmNeeded, JobFailed, TidemarkError

__all__ = ["has_said", "named_failure", "read_failures_by"]

Parser = Callable[[str], TidemarkError | None]

_PARSERS: list[Parser] = []

_UNREAD = re.compile(r"\[FAILED_READ_FILE[^\]]*\] Encountered error while reading file (.+?)\.?\s*(?: SQLSTATE|\n|\Z)")
_CONSTRAINT = re.compile(
    r"\[DELTA_(?:VIOLATE_CONSTRAINT_WITH_VALUES|NOT_NULL_CONSTRAINT_VIOLATED|EXCEED_CHAR_VARCHAR_LIMIT)\] ([^\n]+)"
)
_CAUSE = re.compile(r"^Caused by: (.+)$", re.M)
_CALL = re.compile(r"^An error occurred while calling [^\n]*\n:? ?")
_NO_JVM = re.compile(
    r"\[JVM_ATTRIBUTE_NOT_SUPPORTED\] Attribute `(\w+)`"
    r"|\A'SparkSession' object has no attribute '(_sc)'"
    r"|\A\[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT\] Remote client cannot create a (SparkContext)"
    r"|\A\[NOT_IMPLEMENTED\] (rdd) is not implemented"
)
"""Errors of a Spark Connect session about attributes that only a session with a JVM has."""
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
        return DriverJvmNeeded(attribute=asked[asked.lastindex or 0])
    cause = _deepest_cause(f"{text}\n{_trace_of(error)}")
    unread = _UNREAD.search(text)
    if unread:
        return DataFileUnreadable(file=unread[1], problem=(cause or "Spark gave no cause")[:_LONGEST])
    message = (text.splitlines() or [""])[0][:_LONGEST]
    if cause and cause not in message:
        message = f"{message.rstrip('.')}. Caused by {cause[:_LONGEST]}"
    return JobFailed(error=type(error).__name__, message=message)


def has_said(error: Exception, words: str) -> bool:
    """Whether Spark's error or one of its causes has these words. Spark Connect tells causes in the trace alone."""
    return words in str(error) or words in _trace_of(error)


def _deepest_cause(printed: str) -> str | None:
    """Class and message of the last cause in the trace of a JVM."""
    causes = _CAUSE.findall(printed)
    return str(causes[-1]).strip() if causes else None


def _trace_of(error: Exception) -> str:
    """The JVM's trace of a PySpark exception, which its text leaves out by default; empty for other errors."""
    ask = getattr(error, "getStackTrace", None)  # of Spark Connect
    found = ask() if ask is not None else getattr(error, "_stackTrace", None)
    return found if isinstance(found, str) else ""
