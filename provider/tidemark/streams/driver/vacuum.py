"""Delta's VACUUM by a plan: what streams need stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from tidemark.errors import SourceRecreated
from tidemark.lake.deletion_vectors import absolute
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.model.foreign_json import whole_number
from tidemark.sql.statements import path_name
from tidemark.streams.planning.alterations import Settings, alterations, differing
from tidemark.streams.planning.retention import VacuumPlan
from tidemark.streams.planning.staleness import FILE_RETENTION, file_retention
from tidemark.streams.planning.vacuum_job import Vacuumed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["vacuum"]

_INVENTORY = "path STRING, length BIGINT, isDir BOOLEAN, modificationTime BIGINT"
_VIEW = "tidemark_files_that_may_go"
_RETAIN_IS_HEARD = ("spark.databricks.delta.vacuum.retentionWindowIgnore.enabled", "false")
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_MOST_LISTING_TASKS = 200  # Delta starts as many tasks to list a table as this says, and Spark's default is 10,000
_THREADS = 16


def vacuum(
    spark: SparkSession,
    plan: VacuumPlan,
    options: Mapping[str, str] | None = None,
    *,
    started_at: datetime,
    dry_run: bool = False,
    go_on: Callable[[], None] = lambda: None,
) -> Vacuumed:
    """Set the plan's properties, and run VACUUM with Delta's own retention check. `spark` is a session of the job's
    own: settings are changed in it. `started_at`: now, from which VACUUM counts back. `go_on` raises when the job is to
    stop.

    Properties that are no longer as they were planned on stay; the next plan sees them. A dry run changes nothing, and
    so counts by the properties as they are now. A second run finds the properties set and less to remove; one that was
    broken off sets what is left. Raises SourceRecreated if the table is another by now, TableNotFound.
    """
    log = DeltaLog.open(plan.table.path, options)
    found = log.state()
    if found.table_id != plan.table.table_id:
        raise SourceRecreated(
            table=plan.table.name,
            stream="(VACUUM)",
            path=log.uri,
            found=found.table_id,
            expected=plan.table.table_id,
        )
    spark.conf.set(*_RETAIN_IS_HEARD)
    if int(spark.conf.get(_LISTING_TASKS) or 0) > _MOST_LISTING_TASKS:
        spark.conf.set(_LISTING_TASKS, str(_MOST_LISTING_TASKS))
    configuration = found.metadata.configuration
    changed = differing(configuration, plan.found, plan.settings)
    if not dry_run and not changed:
        _set(spark, log.uri, alterations(configuration, plan.settings), go_on)
    go_on()
    kept = ceil(file_retention(log.state().metadata.configuration) / timedelta(hours=1))
    text = _statement(spark, log, plan.keep_after if plan.by_list or FILE_RETENTION in changed else None)
    statement = f"{text} RETAIN {max(plan.retain_hours_at(started_at), kept)} HOURS"
    if dry_run:
        return _measured(log, [str(row[0]) for row in spark.sql(f"{statement} DRY RUN").collect()])
    before = log.head()
    spark.sql(statement).collect()
    return replace(_logged(log, before), changed_meanwhile=changed if plan.settings else ())


def _set(spark: SparkSession, uri: str, steps: Iterable[Settings], go_on: Callable[[], None]) -> None:
    for step in steps:
        go_on()
        spark.sql(f"ALTER TABLE {path_name(uri)} {_act(step)}")


def _act(step: Settings) -> str:
    listed = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in step.items() if value is not None)
    return (
        f"SET TBLPROPERTIES ({listed})" if listed else f"UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(_text, step))})"
    )


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _statement(spark: SparkSession, log: DeltaLog, keep_after: int | None) -> str:
    """`keep_after`: what Delta may have forgotten of the removals after it is kept by a list."""
    text = f"VACUUM {path_name(log.uri)}"
    if keep_after is not None:
        _files_that_may_go(spark, log, keep_after).createOrReplaceTempView(_VIEW)
        text += f" USING INVENTORY (SELECT * FROM {_VIEW})"
    return text


def _files_that_may_go(spark: SparkSession, log: DeltaLog, keep_after: int) -> DataFrame:
    """All files of the table but those that commits after `keep_after` removed. Delta looks at no others, and of these
    removes what is not live and old enough. That it may have forgotten a removal does no harm then.
    """
    kept = set(_needed(log, keep_after))
    root = log.uri.replace("file://", "file:", 1)  # as Hadoop writes it
    rows = [
        (f"{root}/{file.name}", file.size, False, int(file.modified_at.timestamp() * 1000))
        for file in log.storage.files_below()
        if not file.name.startswith(f"{LOG_DIRECTORY}/") and f"{log.uri}/{file.name}" not in kept
    ]
    return spark.createDataFrame(rows, _INVENTORY)


def _needed(log: DeltaLog, keep_after: int) -> Iterator[str]:
    """URIs, not percent-encoded: data files, deletion vectors and change files of the commits after the version."""
    for commit in log.commits(max(keep_after, log.earliest() - 1), log.head()):
        for gone in commit.removes:
            yield unquote(file_uri(log.uri, gone.path))
            vector = None if gone.deletion_vector is None else absolute(gone.deletion_vector, log.uri)
            if vector is not None and vector.storage_type == "p":
                yield unquote(vector.path_or_inline)
        for change in commit.change_files:
            yield unquote(file_uri(log.uri, change.path))


def _measured(log: DeltaLog, paths: list[str]) -> Vacuumed:
    """Directories, which go when they are empty, do not count."""
    uris = [f"{scheme}:{quote(rest)}" for scheme, rest in (path.split(":", 1) for path in paths)]
    with ThreadPoolExecutor(_THREADS) as pool:
        sizes = [size for size in pool.map(log.storage.size, uris) if size is not None]
    return Vacuumed(len(sizes), sum(sizes))


def _logged(log: DeltaLog, before: int) -> Vacuumed:
    said: dict[str, Any] = {}
    for commit in log.commits(before, log.head()):
        if commit.operation in ("VACUUM START", "VACUUM END"):
            said |= commit.operation_metrics
    files, size = said.get("numDeletedFiles"), said.get("sizeOfDataToDelete")
    return Vacuumed(whole_number(files), whole_number(size))
