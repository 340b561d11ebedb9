"""What the protocol refuses."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "CommitRefused",
    "Fenced",
    "JobsMayBeAlive",
    "PlanChanged",
    "StatementRefused",
    "SubmitRefused",
    "Superseded",
    "TransactionError",
    "TransactionNotFound",
    "TransactionOpen",
]


class TransactionError(TidemarkError):
    """{message}"""


class PlanChanged(TransactionError):
    """Transaction {key} was begun with another plan ({problem}), and it cannot be taken back: {reason}. {help}"""


class Superseded(TransactionError):
    """Transaction {key} is no longer in these hands: {by} took its place after the lease had run out. Its window is not
    lost; whoever holds it finishes it.
    """


class Fenced(TransactionError):
    """Statement {number} of transaction {key} was fenced off at {target}: a later decision forbids this write."""


class SubmitRefused(TransactionError):
    """Transaction {key} no longer holds its window, so no job was started: {problem}."""


class CommitRefused(TransactionError):
    """Transaction {key} cannot commit: {problem}. No offset has moved."""


class TransactionNotFound(TransactionError):
    """There is no transaction {key}."""


class TransactionOpen(TransactionError):
    """Stream {stream!r} cannot be {action} while transaction {key} is open on it. Finish that first: run its task
    again, or `airflow tidemark streams finish`, from a notebook lake.finish({stream!r}). If no target has any of it,
    `airflow tidemark streams release` frees the stream.
    """


class JobsMayBeAlive(TransactionError):
    """A job of transaction {key} may still be running until {until}; nothing can be released before."""


class StatementRefused(TransactionError):
    """The statement cannot be part of a transaction: {problem}. Statement: {sql}"""
