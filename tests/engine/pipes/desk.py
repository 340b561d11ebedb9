"""A client of a lake with tables, and a directory of files with a stage on it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.errors import SqlCompilationError

__all__ = ["Desk"]


class Desk:
    """`lake` is the client; `files` the directory of the stage `s`. Tables are in the schema `db` of the lake."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.root, self.files = spark, path / "lake", path / "in"
        self.files.mkdir()
        self.late = timedelta()
        self.store = f"sqlite:///{path}/control.db"
        self.lake = connect(spark, self.store, lake_root=str(self.root), who="ann", clock=self.now)
        self.lake.create_stage("s", str(self.files))

    def now(self) -> datetime:
        return datetime.now(UTC) + self.late

    def table(self, columns: str, name: str = "t") -> None:
        put_table(self.spark, self.root / "db" / name, f"CREATE TABLE {{t}} ({columns}) USING delta")

    def put(self, **texts: str) -> None:
        """Files by their names without .csv; a double underscore stands for a slash."""
        for name, text in texts.items():
            self.write(f"{name.replace('__', '/')}.csv", text)

    def write(self, name: str, text: str | bytes) -> Path:
        place = self.files / name
        place.parent.mkdir(parents=True, exist_ok=True)
        content = text if isinstance(text, bytes) else text.encode()
        place.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return place

    def rows(self, name: str = "t", columns: str = "*") -> list[tuple[Any, ...]]:
        found = self.spark.sql(f"SELECT {columns} FROM delta.`{self.root}/db/{name}`").collect()
        return sorted((tuple(row) for row in found), key=repr)

    def ask(self, text: str) -> list[Row]:
        return self.lake.sql(text).collect()

    def one(self, text: str) -> Row:
        (row,) = self.ask(text)
        return row

    def status(self, text: str) -> str:
        found: str = self.one(text).status
        return found

    def copied(self, text: str) -> dict[str, str]:
        """The status of each file of a COPY statement."""
        return {row.file: row.status for row in self.ask(text)}

    def refused(self, text: str, run: Callable[[str], Any] | None = None) -> str:
        """The problem of a text that is not understood."""
        try:
            (run or self.lake.sql)(text)
        except SqlCompilationError as error:
            return str(error.problem)
        raise AssertionError(f"not refused: {text}")
