"""The meaning of a database's failure: whether the work may run again at once, and its error in our tree."""

from __future__ import annotations

import sqlite3
from enum import Enum

from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from tidemark.errors import StoreBusy, StoreError, StoreRefused, StoreUnreachable

__all__ = ["Failure", "as_store_error", "failure_of"]


class Failure(Enum):
    """The kinds of failures, by their remedy."""

    CONFLICT = "conflict"  # another transaction came first; the work has had no effect
    DUPLICATE = "duplicate"  # a unique key is taken; a second run of the work sees the row that has it
    LOST = "lost"  # the connection broke, or cannot be opened now
    BUSY = "busy"  # the wait for a lock or a statement took too long
    REFUSED = "refused"  # the server answers no: login, database, rights, settings
    UNUSABLE = "unusable"  # the file of an SQLite store cannot be opened, read or written
    OTHER = "other"  # an error of the statement itself


BY_STATE = {
    "40001": Failure.CONFLICT,  # serialization_failure
    "40P01": Failure.CONFLICT,  # deadlock_detected
    "23505": Failure.DUPLICATE,  # unique_violation
    "55P03": Failure.BUSY,  # lock_not_available: after lock_timeout
    "57014": Failure.BUSY,  # query_canceled: after statement_timeout
    "25006": Failure.LOST,  # read_only_sql_transaction: a standby, until the failover is through
    "25P03": Failure.LOST,  # idle_in_transaction_session_timeout
    "57P01": Failure.LOST,  # admin_shutdown
    "57P02": Failure.LOST,  # crash_shutdown
    "57P03": Failure.LOST,  # cannot_connect_now
    "57P05": Failure.LOST,  # idle_session_timeout
    "3D000": Failure.REFUSED,  # invalid_catalog_name: no such database
    "3F000": Failure.REFUSED,  # invalid_schema_name
    "42501": Failure.REFUSED,  # insufficient_privilege
}
BY_CLASS = {
    "08": Failure.LOST,  # connection_exception
    "28": Failure.REFUSED,  # invalid_authorization
    "53": Failure.LOST,  # insufficient_resources: too many connections, disk full
    "58": Failure.LOST,  # system_error
}
REFUSALS = ("password authentication failed", "no pg_hba.conf entry", "does not exist", "permission denied", "invalid")


def failure_of(error: DBAPIError) -> Failure:
    """The kind of an error by its SQLSTATE, else by the driver's class and words (SQLite, failed connections)."""
    if isinstance(error.orig, sqlite3.Error):
        return _of_sqlite(error.orig)
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return BY_STATE.get(state, BY_CLASS.get(state[:2], Failure.OTHER))
    words = str(error.orig)
    if isinstance(error, ProgrammingError) or any(refusal in words for refusal in REFUSALS):
        return Failure.REFUSED
    if isinstance(error, OperationalError) or error.connection_invalidated:
        return Failure.LOST
    return Failure.OTHER


def _of_sqlite(error: sqlite3.Error) -> Failure:
    if isinstance(error, sqlite3.IntegrityError):
        return Failure.DUPLICATE
    if not isinstance(error, sqlite3.OperationalError):
        return Failure.OTHER
    return Failure.CONFLICT if "locked" in str(error) else Failure.UNUSABLE


def as_store_error(error: DBAPIError, url: str) -> StoreError | None:
    """The error of our tree, with the store's URL; None for an error of the statement, which is raised as it is."""
    problem = " ".join(str(error.orig).split())
    match failure_of(error):
        case Failure.CONFLICT | Failure.BUSY:
            return StoreBusy(url=url, problem=problem)
        case Failure.LOST | Failure.UNUSABLE:
            return StoreUnreachable(url=url, problem=problem)
        case Failure.REFUSED:
            return StoreRefused(url=url, problem=problem)
        case _:
            return None
