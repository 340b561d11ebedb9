"""A lake with a table that a pipe loads from a directory, and a model of what the table must have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.jobs.run import run
from tidemark.model.codec import to_plain
from tidemark.model.jobs import Job, JobSpec
from tidemark.pipes.driver.files_table import FilesTable, latest_results
from tidemark.pipes.model.copying import CopyOptions, ErrorMode, Load, OnError
from tidemark.pipes.model.events import KEPT
from tidemark.pipes.model.formats import FileFormat
from tidemark.pipes.model.jobs import COPY_FILES, RUN_PIPE, CopyFiles, RunPipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LoadWorld", "copy_spec", "load_of", "pipe_spec", "run_request", "text_of"]

SKIP = OnError(ErrorMode.SKIP_FILE)


def text_of(values: list[str]) -> str:
    """A file of one column with these values."""
    return "".join(f"{value}\n" for value in values)


def load_of(home: Path, on_error: OnError = SKIP) -> Load:
    options = CopyOptions(on_error=on_error)
    return Load("db.t", f"file://{home}/lake/db/t", f"file://{home}/in", format=FileFormat(), options=options)


def run_request(home: Path, **limits: Any) -> RunPipe:
    """A run of the pipe db.p."""
    return RunPipe("db.p", "uid", f"file://{home}/lake/db/p__files", load_of(home), **limits)


def _spec(home: Path, job: Job[Any, Any], request: Any) -> JobSpec:
    late = datetime.now(UTC) + timedelta(hours=1)
    uri = f"file://{home}"
    return JobSpec(job.name, job.entry, to_plain(request), "s", f"{uri}/lake/_tidemark", f"{uri}/r", f"{uri}/c", late)


def pipe_spec(home: Path, **limits: Any) -> JobSpec:
    """The job of a run of the pipe."""
    return _spec(home, RUN_PIPE, run_request(home, **limits))


def copy_spec(home: Path, key: str) -> JobSpec:
    """The job of a COPY INTO with that key."""
    return _spec(home, COPY_FILES, CopyFiles(load_of(home), key))


@dataclass
class LoadWorld:
    """`seen`: the content of each file when a run first met it, in lines."""

    spark: SparkSession
    home: Path
    seen: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.home / "in").mkdir(exist_ok=True)
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{self.home}/lake/db/t` (v INT) USING delta")

    def put(self, name: str, values: list[str]) -> None:
        """A file, whole at once, as files should come."""
        place = self.home / "in" / name
        place.parent.mkdir(exist_ok=True)
        hidden = place.with_name(f".{place.name}")
        hidden.write_text(text_of(values))
        hidden.rename(place)

    def remove(self, name: str) -> None:
        (self.home / "in" / name).unlink(missing_ok=True)

    def note(self) -> None:
        """Take down what a run that begins now will meet."""
        for place in sorted((self.home / "in").rglob("*")):
            if place.is_file():
                name = str(place.relative_to(self.home / "in"))
                self.seen.setdefault(name, place.read_text().splitlines())

    def run(self, spec: JobSpec) -> Any:
        """The report of the job. Raises AssertionError with its error."""
        result = run(self.spark, spec, say=lambda text: None)
        assert result.error is None, result.error
        return result.report

    def rows(self) -> Counter[int]:
        """The values in the table."""
        return Counter(row.v for row in self.spark.read.format("delta").load(f"{self.home}/lake/db/t").collect())

    def expected_rows(self) -> Counter[int]:
        """The values of the files without a bad line."""
        good = (values for values in self.seen.values() if all(map(_is_number, values)))
        return Counter(int(value) for values in good for value in values)

    def reports(self) -> dict[str, tuple[str, int, int, int]]:
        """File → status, rows parsed, rows loaded, errors."""
        table = FilesTable.open(self.spark, f"file://{self.home}/lake/db/p__files", None, kept=KEPT)
        rows: DataFrame = latest_results(table.remembered(datetime.now(UTC)))
        found = rows.select("file", "status", "rows_parsed", "rows_loaded", "errors_seen").collect()
        assert len({row.file for row in found}) == len(found)
        return {row.file: (row.status, row.rows_parsed, row.rows_loaded, row.errors_seen) for row in found}

    def expected_reports(self) -> dict[str, tuple[str, int, int, int]]:
        """The reports that are the truth."""
        return {name: _report(values) for name, values in self.seen.items()}


def _is_number(value: str) -> bool:
    return value.lstrip("-").isdigit()


def _report(values: list[str]) -> tuple[str, int, int, int]:
    bad = sum(not _is_number(value) for value in values)
    return ("LOAD_FAILED" if bad else "LOADED", len(values), 0 if bad else len(values), bad)
