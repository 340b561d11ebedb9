"""The answers to queries of streams that need no Spark: from the store and the logs alone."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from tidemark.control.store import ControlStore
from tidemark.errors import StatementRefused
from tidemark.streams.planning.stream_sql.queries import spliced
from tidemark.streams.planning.stream_sql.statements import (
    BacklogCall,
    HasDataCall,
    QueryPart,
    StreamQuery,
    TableTimestampCall,
)
from tidemark.streams.worker.backlog import stream_backlog, stream_table_timestamp
from tidemark.streams.worker.has_data import has_data
from tidemark.streams.worker.opening import Tables

__all__ = ["answer_query"]

WITHOUT_SPARK = (
    "a task without Spark only reads logs. Use lake.sql in a @task or a notebook, or write the rows with an INSERT that"
    " reads the stream"
)


def answer_query(store: ControlStore, query: StreamQuery, *, tables: Tables) -> list[dict[str, Any]]:
    """The rows of `SELECT` with nothing but system functions of streams, or of `SELECT * FROM TABLE(…BACKLOG…)`.

    Raises StatementRefused for any other query, and what the functions raise.
    """
    marks = [f"part_{number}" for number in range(len(query.parts))]
    shape = spliced(query, marks).strip().rstrip(";").rstrip()
    backlog = re.fullmatch(r"SELECT\s+\*\s+FROM\s+part_0", shape, re.IGNORECASE)
    first = query.parts[0]
    if backlog and isinstance(first, BacklogCall):
        waiting = stream_backlog(store, first.stream.text, tables=tables)
        return [_plain(vars(one)) for one in waiting]
    columns = re.fullmatch(r"SELECT\s+(.+)", shape, re.IGNORECASE | re.DOTALL)
    found = [_COLUMN.fullmatch(column.strip()) for column in columns[1].split(",")] if columns else [None]
    if any(one is None for one in found):
        raise StatementRefused(problem=WITHOUT_SPARK, sql=query.text)
    titles = [one["title"] for one in found if one is not None]
    parts = zip(query.parts, titles, strict=True)
    return [{title or _title(part): _value(store, query, part, tables) for part, title in parts}]


_COLUMN = re.compile(r"part_\d+(?:\s+(?:AS\s+)?(?P<title>\w+))?", re.IGNORECASE)


def _title(part: QueryPart) -> str:
    return part.title or "?" if isinstance(part, HasDataCall | TableTimestampCall) else "?"


def _value(store: ControlStore, query: StreamQuery, part: QueryPart, tables: Tables) -> bool | int:
    if isinstance(part, HasDataCall):
        return has_data(store, part.stream.text, tables=tables)
    if isinstance(part, TableTimestampCall):
        return stream_table_timestamp(store, part.stream.text, tables=tables)
    raise StatementRefused(problem=WITHOUT_SPARK, sql=query.text)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
