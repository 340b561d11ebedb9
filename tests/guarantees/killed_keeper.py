"""Keeps an answer, as a client does after Spark has written it: store, workspace. Failpoints kill this process."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.control.store import ControlStore
from tidemark.results.model.answers import WrittenAnswer
from tidemark.results.planning.queries import Query, read_query
from tidemark.results.worker.asking import Asked, ask
from tidemark.results.worker.cache import ResultCache, keep

SCHEMA = {"type": "struct", "fields": [{"name": "n", "type": "integer", "nullable": True, "metadata": {}}]}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def asked(cache: ResultCache) -> Asked:
    """The query `SELECT 1 AS n`, which reads no table."""
    query = read_query("SELECT 1 AS n")
    assert isinstance(query, Query)
    found = ask(
        query,
        settings={"spark.sql.session.timeZone": "UTC"},
        locate=str,
        options={},
        rules=cache.rules,
        now=NOW,
        streams=frozenset(),
        views=lambda _: (),
    )
    assert isinstance(found, Asked)
    return found


def main(url: str, workspace: str) -> None:
    cache = ResultCache(ControlStore(url, clock=lambda: NOW), workspace)
    directory = cache.new_directory()
    place = Path(directory.removeprefix("file://"))
    place.mkdir()
    pq.write_table(pa.table({"c0": pa.array([1], pa.int32())}), place / "answer.parquet")
    size = (place / "answer.parquet").stat().st_size
    keep(cache, asked(cache), WrittenAnswer(directory, ("answer.parquet",), 1, size, json.dumps(SCHEMA), "UTC"))


if __name__ == "__main__":
    main(*sys.argv[1:])
