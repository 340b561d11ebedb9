"""The shapes S1 to S7: tables with a window each, and twins with the feed on that had the same statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["SHAPES", "Shape", "Window", "build", "build_one", "rows_of"]

COLUMNS = ("id", "grp", "x", "name")


@dataclass(frozen=True)
class Shape:
    """`statements(rows)` are the commits of the window; {t} is the table."""

    name: str
    title: str
    statements: Callable[[int], Iterator[str]]
    deletion_vectors: bool = True
    smaller: int = 1  # the table has rows / smaller rows
    files: int = 16


@dataclass(frozen=True)
class Window:
    """A shape made real: the versions of both tables are the same."""

    shape: Shape
    rows: int
    path: Path
    twin: Path
    start: int
    end: int


def build(spark: SparkSession, shape: Shape, rows: int, home: Path) -> Window:
    """Make the table and its twin under `home`, unless an earlier run has."""
    count = max(rows // shape.smaller, 100)
    paths = [home / f"{shape.name}-{count}-{kind}" for kind in ("table", "twin")]
    versions = [_made(path) or _make(spark, shape, count, path, feed=path is paths[1]) for path in paths]
    assert versions[0] == versions[1], "the twin went through other versions"
    return Window(shape, count, *paths, *versions[0])


def build_one(spark: SparkSession, shape: Shape, rows: int, home: Path) -> tuple[Path, int, int]:
    """Make the table only, unless an earlier run has: its path, and the versions before and after the statements."""
    path = home / f"{shape.name}-{rows}-table"
    return path, *(_made(path) or _make(spark, shape, rows, path, feed=False))


def _made(path: Path) -> tuple[int, int] | None:
    """The window of a table that is finished."""
    note = path.with_suffix(".window")
    return tuple(json.loads(note.read_text())) if note.exists() else None


def _make(spark: SparkSession, shape: Shape, rows: int, path: Path, *, feed: bool) -> tuple[int, int]:
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, grp INT, x DOUBLE, name STRING) USING delta TBLPROPERTIES ("
        f"'delta.enableRowTracking' = 'true', 'delta.enableChangeDataFeed' = '{str(feed).lower()}', "
        f"'delta.enableDeletionVectors' = '{str(shape.deletion_vectors).lower()}')"
    )
    spark.sql(f"INSERT INTO {name} {rows_of(0, rows, shape.files)}")
    start = _head(path)
    for statement in shape.statements(rows):
        spark.sql(statement.replace("{t}", name))
    window = start, _head(path)
    path.with_suffix(".window").write_text(json.dumps(window))
    return window


def rows_of(first: int, last: int, files: int = 1) -> str:
    """A query for the rows with these ids."""
    return (
        "SELECT id, CAST(id % 1000 AS INT) AS grp, id * 0.5D AS x, md5(CAST(id AS STRING)) AS name "
        f"FROM range({first}, {last}, 1, {files})"
    )


def _head(path: Path) -> int:
    return max(int(file.stem) for file in (path / "_delta_log").glob("*.json") if file.stem.isdigit())


def _appends(rows: int) -> Iterator[str]:
    step = max(rows // 400, 10)
    for number in range(30):
        yield f"INSERT INTO {{t}} {rows_of(rows + number * step, rows + (number + 1) * step)}"


def _mixed(rows: int) -> Iterator[str]:
    step, every = max(rows // 4000, 10), max(rows // 800, 7)
    for number in range(10):
        yield f"INSERT INTO {{t}} {rows_of(rows + number * step, rows + (number + 1) * step)}"
        yield f"DELETE FROM {{t}} WHERE id % {every // 2 or 2} = {number} AND id % 5 < 2"
        yield f"UPDATE {{t}} SET x = x + 1 WHERE id % {every * 2} = {number + 11}"


def _merges(count: int, keys: Callable[[int], int]) -> Callable[[int], Iterator[str]]:
    def statements(rows: int) -> Iterator[str]:
        for number in range(count):
            of_each = min(keys(rows), rows // 2)
            source = f"SELECT (id * {rows // of_each} + {number}) % {rows} AS id FROM range(0, {of_each}, 1, 1)"
            yield f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = t.x + 1"

    return statements


def _one_commit(rows: int) -> Iterator[str]:
    yield f"UPDATE {{t}} SET x = x + 1 WHERE id % {max(rows // 999, 2)} = 1"


def _small_updates_around_optimize(rows: int) -> Iterator[str]:
    every = max(rows // 401, 10)
    for number in range(3):
        yield f"UPDATE {{t}} SET x = x + 1 WHERE id % {every} = {number}"
    yield "OPTIMIZE {t}"
    for number in (2, 3):
        yield f"UPDATE {{t}} SET x = x + 1 WHERE id % {every} = {number}"


def _scattered(rows: int) -> Iterator[str]:
    yield "DELETE FROM {t} WHERE id % 50 = 0"
    yield "UPDATE {t} SET x = x + 1 WHERE id % 4 = 1"


SHAPES = (
    Shape("S1", "30 appends", _appends),
    Shape("S2", "30 mixed commits, deletion vectors", _mixed),
    Shape("S3", "5 MERGEs, copy-on-write", _merges(5, lambda rows: 1000), deletion_vectors=False),
    Shape("S4", "1 commit, 999 rows", _one_commit),
    Shape("S5", "100 MERGEs of 100, a small table", _merges(100, lambda rows: 100), smaller=40),
    Shape("S6", "OPTIMIZE between 5 small updates", _small_updates_around_optimize),
    Shape("S7", "2 % deleted, 25 % updated all over one file", _scattered, files=1),
)
