"""Loads of files against Spark's own ways: files and rows a second, CPU seconds of the process tree.

    python -m tests.benchmarks.load_files [--files 10000] [--rows 100] [--rounds 3] [--only csv,parquet,history,listing]
        [--memory 3g]

`csv`, `parquet`: a directory of files with 4 columns is loaded into a new table by one run of a pipe, by COPY INTO, by
a COPY INTO for each 1,000 files in turn, by `spark.read` and an append, and by Spark's streaming file source
(AvailableNow). Each round does all of them, in turn.
`history`: a run of a pipe for 1,000 new files, with a queue that knows 0 and 1,000,000 files, and the memory of the
driver's Python; `--memory 512m` is the heap of the driver's JVM. `listing`: 100,000 names of a local disk; the pages
of a store of objects are counted in tests/engine/pipes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.change_sets import home_for
from tidemark.jobs.run import run
from tidemark.lake.file_listing import FileListing
from tidemark.model.codec import to_plain
from tidemark.model.jobs import Job, JobSpec
from tidemark.pipes.model.copying import CopyOptions, ErrorMode, Load, MatchBy, OnError
from tidemark.pipes.model.events import FILES_SCHEMA, Event
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.model.jobs import COPY_FILES, RUN_PIPE, CopyFiles, RunPipe
from tidemark.testing import local_spark

COLUMNS = "id BIGINT, at TIMESTAMP, name STRING, price DECIMAL(12,2)"
SKIP = OnError(ErrorMode.SKIP_FILE)
LOOP = 1_000  # files of a statement in the loop
_numbers = itertools.count()


class Place:
    """A lake, and directories of files."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home = spark, home
        (home / "lake").mkdir(parents=True)

    def table(self) -> Path:
        path = self.home / "lake" / f"t{next(_numbers)}"
        self.spark.sql(f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta")
        return path

    def files(self, kind: FileType, files: int, rows: int) -> Path:
        """A directory with files of that type."""
        place = self.home / f"{kind.value.lower()}-{files}-{next(_numbers)}"
        place.mkdir()
        for number in range(files):
            if kind is FileType.CSV:
                lines = [f"{number * rows + n},2026-01-01 00:00:{n % 60:02},name {n},{n}.25" for n in range(rows)]
                (place / f"f{number:06}.csv").write_text("\n".join(lines) + "\n")
            else:
                pq.write_table(_table(number, rows), place / f"f{number:06}.parquet")
        return place

    def job(self, job: Job[Any, Any], request: Any) -> Any:
        uri = f"file://{self.home}"
        late = datetime.now(UTC) + timedelta(hours=2)
        spec = JobSpec(
            job.name, job.entry, to_plain(request), "s", f"{uri}/lake/_tidemark", f"{uri}/r", f"{uri}/c", late
        )
        result = run(self.spark, spec, say=lambda text: None)
        assert result.error is None, result.error
        return job.reported(result)


def _table(number: int, rows: int) -> pa.Table:
    ids = [number * rows + n for n in range(rows)]
    at = [datetime(2026, 1, 1, 0, 0, n % 60, tzinfo=UTC) for n in range(rows)]
    price = pa.array([n for n in range(rows)], pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2))
    return pa.table(
        {
            "id": ids,
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "name": [f"name {n}" for n in range(rows)],
            "price": price,
        }
    )


def load_of(table: Path, place: Path, kind: FileType) -> Load:
    match = MatchBy.NONE if kind is FileType.CSV else MatchBy.CASE_INSENSITIVE
    options = CopyOptions(on_error=SKIP, match_by=match)
    return Load(table.name, f"file://{table}", f"file://{place}", format=FileFormat(kind), options=options)


def by_pipe(lake: Place, place: Path, kind: FileType) -> Path:
    table = lake.table()
    queue = f"file://{lake.home}/lake/q{next(_numbers)}__files"
    lake.job(RUN_PIPE, RunPipe("p", "u", queue, load_of(table, place, kind), max_files=1_000_000))
    return table


def by_copy(lake: Place, place: Path, kind: FileType) -> Path:
    table = lake.table()
    lake.job(COPY_FILES, CopyFiles(load_of(table, place, kind), f"run {next(_numbers)}"))
    return table


def by_copy_loop(lake: Place, place: Path, kind: FileType) -> Path:
    """A statement for each 1,000 files, by their names, as a schedule without pipes would give them."""
    table, names = lake.table(), sorted(file.name for file in place.iterdir())
    for at in range(0, len(names), LOOP):
        load = replace(load_of(table, place, kind), files=tuple(names[at : at + LOOP]))
        lake.job(COPY_FILES, CopyFiles(load, f"run {next(_numbers)}"))
    return table


def by_append(lake: Place, place: Path, kind: FileType) -> Path:
    table = lake.table()
    rows = lake.spark.read.schema(COLUMNS).format(kind.value.lower()).load(str(place))
    rows.write.format("delta").mode("append").save(str(table))
    return table


def by_stream(lake: Place, place: Path, kind: FileType) -> Path:
    table = lake.table()
    rows = lake.spark.readStream.schema(COLUMNS).format(kind.value.lower()).load(str(place))
    state = lake.home / f"state{next(_numbers)}"
    stream = rows.writeStream.format("delta").option("checkpointLocation", str(state)).trigger(availableNow=True)
    stream.start(str(table)).awaitTermination()
    return table


WAYS: dict[str, Callable[[Place, Path, FileType], Path]] = {
    "pipe": by_pipe,
    "copy": by_copy,
    "copy loop": by_copy_loop,
    "read and append": by_append,
    "streaming file source": by_stream,
}


@contextmanager
def measured(into: dict[str, list[float]], name: str) -> Iterator[None]:
    """Wall and CPU seconds of this process and its children."""
    before, began = _cpu(), time.perf_counter()
    yield
    into.setdefault(f"{name}: wall s", []).append(time.perf_counter() - began)
    into.setdefault(f"{name}: CPU s", []).append(_cpu() - before)


def _cpu() -> float:
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def ways(lake: Place, kind: FileType, files: int, rows: int, rounds: int) -> dict[str, Any]:
    place = lake.files(kind, files, rows)
    small = lake.files(kind, 20, 10)
    for way in WAYS.values():  # classes are loaded, code is compiled
        way(lake, small, kind)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, way in WAYS.items():
            with measured(found, name):
                table = way(lake, place, kind)
            assert lake.spark.read.format("delta").load(str(table)).count() == files * rows
            shutil.rmtree(table)
    medians = {name: round(statistics.median(times), 2) for name, times in found.items()}
    base = medians["read and append: CPU s"]
    ratios = {f"{name}: CPU, times read and append": round(medians[f"{name}: CPU s"] / base, 2) for name in WAYS}
    speed = {f"{name}: files/s": round(files / medians[f"{name}: wall s"]) for name in WAYS}
    speed |= {f"{name}: rows/s": round(files * rows / medians[f"{name}: wall s"]) for name in WAYS}
    return {**medians, **speed, **ratios}


def history(lake: Place, known: int, rounds: int) -> dict[str, Any]:
    """A run for 1,000 new files beside a history, and the peak memory of this Python."""
    table, found = lake.table(), {}
    queue = lake.home / "lake" / f"h{next(_numbers)}__files"
    place = lake.files(FileType.CSV, 10, 10)
    request = RunPipe("p", "u", f"file://{queue}", load_of(table, place, FileType.CSV))
    lake.job(RUN_PIPE, request)
    if known:
        kept = datetime.now(UTC).date()
        names = [F.concat(F.lit("old/file-"), F.col("id"), F.lit(".csv")).alias("file")]
        rows = lake.spark.range(known).select(
            F.lit(Event.PLANNED.value).alias("event"), *names, F.lit(kept).alias("day")
        )
        schema = [column.split(" ") for column in FILES_SCHEMA.split(", ")]
        columns = [F.col(n).cast(t) if n in rows.columns else F.lit(None).cast(t).alias(n) for n, t in schema]
        rows.select(*columns).repartition(20).write.format("delta").mode("append").save(str(queue))
    for number in range(rounds):
        for n in range(1_000):
            (place / f"new-{number}-{n}.csv").write_text(f"{n},2026-01-01 00:00:00,name,1.25\n")
        with measured(found, f"{known:,} known"):
            done = lake.job(RUN_PIPE, request)
        assert done.files_loaded == 1_000
    memory = psutil.Process().memory_info().rss >> 20
    return {
        **{name: round(statistics.median(times), 2) for name, times in found.items()},
        "driver's Python, MiB": memory,
    }


def listing(home: Path) -> dict[str, Any]:
    place = home / "names"
    place.mkdir()
    for number in range(100_000):
        (place / f"f{number:06}.csv").touch()
    began = time.perf_counter()
    count = sum(1 for _ in FileListing(f"file://{place}"))
    return {"names": count, "wall s": round(time.perf_counter() - began, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="csv,parquet,history,listing")
    parser.add_argument("--memory", default="3g", help="heap of the driver's JVM")
    asked = parser.parse_args()
    only = asked.only.split(",")
    with home_for(None) as home:
        if "listing" in only:
            print(json.dumps({"listing": listing(home)}), flush=True)
        spark = local_spark(warehouse=home / "warehouse", memory=asked.memory)
        lake = Place(spark, home / "files")
        for kind in (FileType.CSV, FileType.PARQUET):
            if kind.value.lower() in only:
                found = ways(lake, kind, asked.files, asked.rows, asked.rounds)
                print(json.dumps({kind.value: found}, indent=2), flush=True)
        if "history" in only:
            for known in (0, 1_000_000):
                print(json.dumps({"history": history(lake, known, asked.rounds)}, indent=2), flush=True)
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
