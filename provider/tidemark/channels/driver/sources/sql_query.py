"""Rows of a SQL query behind a growing key. A token is the key of the last row: `42`, `"text"`, or a time."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tidemark.errors import InvalidArgument, SourceUnreadable
from tidemark.model.foreign_json import exact_number, parsed
from tidemark.model.source_connection import SourceConnection

__all__ = ["sql_query"]

_AFTER = re.compile(r"(?<!:):after\b")


def sql_query(
    after_token: str | None,
    *,
    connection: SourceConnection,
    query: str,
    key: str,
    initial: Any,
    rows_per_batch: int = 10_000,
) -> Iterator[tuple[Any, str]]:
    """(rows, token) of the rows behind a token, in batches, by a cursor of the server.

    `query`: with `:after` in its condition, in the order of `key`, such as `SELECT * FROM t WHERE id > :after ORDER BY
    id`. `key`: its unique, growing column. `initial`: the key before the first row. A row whose key becomes visible
    after a greater one is never read. Keep back the rows of transactions that may still be open.

    Raises InvalidArgument for a token or an initial value that is no key. Raises SourceUnreadable if the database
    refuses, for keys that are NULL, repeat or go back, and for two columns of one name.
    """
    if not _AFTER.search(query):
        raise InvalidArgument(argument="query", value=query, problem="its condition must have :after")
    last = initial if after_token is None else _key_of(after_token)
    with _answering(connection, query, last, int(rows_per_batch)) as found:
        _require_distinct(found.keys(), connection.conn_id)
        for part in found.mappings().partitions(int(rows_per_batch)):
            for row in part:
                last = _next_key(row, key, last, connection.conn_id)
            yield [{name: _plain(value) for name, value in row.items()} for row in part], _token_of(last)


@contextmanager
def _answering(connection: SourceConnection, query: str, after: Any, size: int) -> Iterator[Any]:
    if connection.sqlalchemy_url is None:
        raise SourceUnreadable(source=connection.conn_id, problem="the connection leads to no database.")
    try:
        engine = sa.create_engine(connection.sqlalchemy_url, poolclass=NullPool, hide_parameters=True)
        with engine.connect() as session:
            streaming = session.execution_options(stream_results=True, yield_per=size)
            yield streaming.execute(sa.text(query), {"after": after})
    except (SQLAlchemyError, ImportError, OverflowError, UnicodeError) as error:  # the last two: of a client's own code
        problem = f"{str(getattr(error, 'orig', None) or error).strip().rstrip('.')}."
        raise SourceUnreadable(source=connection.conn_id, problem=problem) from error


def _require_distinct(names: Iterable[str], source: str) -> None:
    """Raises SourceUnreadable for a name that comes twice: a row would have the value of one of both columns."""
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        problem = f"the query has two columns of the name {twice[0]}: give one of them another name by AS."
        raise SourceUnreadable(source=source, problem=problem)


def _next_key(row: Mapping[str, Any], key: str, last: Any, source: str) -> Any:
    if key not in row:
        problem = f"the query has no column of that name, but {', '.join(row)}"
        raise InvalidArgument(argument="key", value=key, problem=problem)
    found = _plain(row[key])
    if found is None:
        raise SourceUnreadable(source=source, problem=f"a row has no value of the key {key}.")
    if not isinstance(found, int | float | Decimal | str | date):
        problem = f"the key {key} is of type {type(found).__name__}, and must be a number, a text or a time."
        raise SourceUnreadable(source=source, problem=problem)
    try:
        grows = found != last if isinstance(found, str) else found > last  # a database has its own order of texts
    except TypeError:
        grows = True  # the first value, of another type than `initial`
    if not grows:
        problem = f"a row with the key {found!r} follows one with {last!r}: ORDER BY a unique, growing key."
        raise SourceUnreadable(source=source, problem=problem)
    return found


def _token_of(key: Any) -> str:
    if isinstance(key, str):
        return json.dumps(key)
    return key.isoformat() if isinstance(key, date) else str(key)


def _key_of(token: str) -> Any:
    try:
        found = parsed(token, fraction=_number)
        is_finite = isinstance(found, int | Decimal) or (isinstance(found, float) and math.isfinite(found))
        if isinstance(found, str) or (is_finite and not isinstance(found, bool)):
            return found
    except ValueError:
        pass
    try:
        return date.fromisoformat(token) if len(token) == len("2026-01-01") else datetime.fromisoformat(token)
    except ValueError:
        problem = 'it must be the key of the last row: a number, a text as "text", or a time'
        raise InvalidArgument(argument="offset_token", value=token, problem=problem) from None


def _number(text: str) -> float | Decimal:
    """The number with each digit; a float if it has them all, since some clients take no others."""
    return float(text) if str(float(text)) == text else exact_number(text)


def _plain(value: Any) -> Any:
    """A value of a database's client as channels take it."""
    if isinstance(value, memoryview):
        return bytes(value)
    return str(value) if isinstance(value, UUID) else value
