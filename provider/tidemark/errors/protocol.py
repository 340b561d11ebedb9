"""Errors of transactions: acts that the protocol refuses."""

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
    """Transaction {key} began with another plan ({problem}), and cannot be rolled back: {reason}. {help}"""


class Superseded(TransactionError):
    """Transaction {key} no longer belongs to this run: {by} took its place. Its window is not lost. Look at the run
    that holds it now, which delivers it.
    """


class Fenced(TransactionError):
    """Statement {number} of transaction {key} was fenced off at {target}: a later decision forbids this write. It wrote
    nothing. Run the task again: it finds the outcome of the window.
    """


class SubmitRefused(TransactionError):
    """Transaction {key} no longer holds its window, so no job was started: {problem}. No change is lost. Run the task
    again. In a task group, clear the whole group; in a notebook, begin a new transaction.
    """


class CommitRefused(TransactionError):
    """Transaction {key} cannot commit: {problem}. No offset has moved, and no change is lost. Run the task again. In a
    task group, clear the whole group; in a notebook, begin a new transaction.
    """


class TransactionNotFound(TransactionError):
    """Transaction {key} does not exist: it was never begun, was released, or has left the history. Check the run and
    the stream: `airflow tidemark streams show` lists the newest transactions. If a task group asked for it, clear the
    group from begin on.
    """


class TransactionOpen(TransactionError):
    """Stream {stream!r} cannot be {action} while transaction {key} is open on it. Finish that first: run its task
    again, or `airflow tidemark streams finish`, or lake.finish({stream!r}) in a notebook. If no target has any part of
    it, free the stream with `airflow tidemark streams release`. If it can never be finished, give it up with
    `airflow tidemark streams abandon`.
    """


class JobsMayBeAlive(TransactionError):
    """A job of transaction {key} may still be running until {until}. Nothing was released; try again after that."""


class StatementRefused(TransactionError):
    """The statement cannot be part of a transaction: {problem}. Statement: {sql}"""
