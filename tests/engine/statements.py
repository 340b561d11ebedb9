"""Statements and tables for the tests of the writers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.table_templates import put_made
from tidemark.delivery.driver.exactly_once import Delivering
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, Statement, TransactionKey, WriteAs
from tidemark.model.streams import StreamMode, StreamWindow, TableRef, WindowKind

KEY = TransactionKey("dag", "run", "task")


def window(name: str = "s", start: int = 0, end: int = 1, path: str = "file:///source") -> StreamWindow:
    source = TableRef("source", path, "source-id")
    return StreamWindow("uid-1", name, source, StreamMode.STANDARD, WindowKind.CHANGES, start, end)


def delivering(*windows: StreamWindow, **more: Any) -> Delivering:
    return Delivering("store-1", KEY, windows or (window(),), **more)


def statement(
    path: Path | str, *, number: int = 1, version: int = 1, base: int | None = None, **write: Any
) -> Statement:
    """A statement on the table at `path` as it is now."""
    log = DeltaLog.open(str(path))
    request = PlannedWrite(**{"write_as": WriteAs.APPEND, "target": "target", "source": "s", **write})
    return Statement(
        number=number,
        write=request,
        target=TableRef("target", log.uri, log.state().table_id),
        base_version=log.head() if base is None else base,
        app_id=f"tidemark/uid-1/{number}",
        txn_version=version,
    )


def make(spark: Any, path: Path, rows: Sequence[Any], schema: str = "id BIGINT, v STRING") -> str:
    """A Delta table with these rows; returns its URI."""
    put_made(
        spark,
        path,
        ("made", repr(rows), schema),
        lambda: spark.createDataFrame(list(rows), schema).write.format("delta").save(str(path)),
    )
    return DeltaLog.open(str(path)).uri


def rows_of(spark: Any, path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(path)).collect())
