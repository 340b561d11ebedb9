"""Rows of a query whose changes cannot be computed: Spark's own answer at pinned versions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.bases import ROW
from tidemark.changes.driver.views.opening import open_bases
from tidemark.changes.driver.views.settings import queried
from tidemark.jobs.schemas import struct_type
from tidemark.model.streams import BaseWindow, StreamMode
from tidemark.model.views import BASE, ViewQuery
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["over_frames", "read_plain_rows"]


def read_plain_rows(
    spark: SparkSession,
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    options: Mapping[str, str] | None = None,
    *,
    reader: str = "CHANGES",
) -> DataFrame:
    """The rows of the query at the end of `windows`, with the columns that it had at its creation.

    Raises SourceRecreated, StreamStale, VersionVacuumed.
    """
    ends = [BaseWindow(window.table, window.end, window.end) for window in windows]
    frames = {}
    for number, base in enumerate(open_bases(query, ends, StreamMode.STANDARD, options, reader)):
        rows = base.rows(spark, base.window.end)
        base.require_files_of(rows)
        frames[f"{BASE}{number}"] = rows.drop(ROW)
    found = over_frames(spark, query.text, frames, query.settings)
    return found.select(*(quoted(name) for name in struct_type(query.schema_json).names))


def over_frames(
    spark: SparkSession, text: str, frames: Mapping[str, DataFrame], settings: Mapping[str, str | None]
) -> DataFrame:
    """The query `text` under `settings`, in which the names in `frames` are these DataFrames."""
    names = "|".join(map(re.escape, sorted(frames, key=len, reverse=True)))
    escaped = text.replace("{", "{{").replace("}", "}}")
    return queried(spark, re.sub(rf"\b({names})\b", r"{\1}", escaped), frames, settings)
