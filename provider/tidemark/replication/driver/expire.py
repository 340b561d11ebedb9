"""Retention of an event log: events that are old, and that no target needs any more, leave it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.delivery.driver.exactly_once import until_committed
from tidemark.jobs.own_tables import require_no_lost_commits
from tidemark.lake.event_logs import capture_app_id
from tidemark.replication.driver.event_log import require_whole, widths
from tidemark.replication.driver.object_events import from_place
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.driver.written_files import files_needed_from
from tidemark.replication.model.jobs import ExpireEvents, ExpireReport
from tidemark.replication.planning.events import Change
from tidemark.sql.identifiers import string_literal
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.lake.delta_log import DeltaLog
    from tidemark.replication.model.replication import LogPosition

__all__ = ["expire_events", "is_needed"]


def expire_events(
    session: SparkSession,
    store_id: str,
    request: ExpireEvents,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    stop_if_due: Callable[[], None] = lambda: None,
) -> ExpireReport:
    """Remove, in one commit, the events of batches that were read before `request.before`. Events that `request.needed`
    names stay, and so do those that are not in all event files. The newest batch stays, by which a restored log is
    known. SCHEMA events stay, too: event files need them for the columns of later events.

    At the same time captures may append, and apply jobs may read the events they need; VACUUM takes the files. A second
    run removes what the first has left. Raises EventLogChanged. Raises CommitsMayBeLost if a capture's commit could be
    lost by this one.
    """
    log = require_whole(session, store_id, request, options)
    require_no_lost_commits(session, log.uri, only_writer=request.only_writer)
    with fitted(session, *widths(log, capture_app_id(store_id, request.replication_uid))):
        files = files_needed_from(session, request.event_log, options)
        return _expired(session, log, request, files, say, stop_if_due)


def _expired(
    session: SparkSession,
    log: DeltaLog,
    request: ExpireEvents,
    files: str | None,
    say: Callable[[str], None],
    stop_if_due: Callable[[], None],
) -> ExpireReport:
    events = session.read.format("delta").load(log.uri).where(F.col("change") != Change.SCHEMA.value)
    may_go = events.where((F.col("read_timestamp") < F.lit(request.before)) & (F.col("batch") < request.batches))
    (last,) = may_go.agg(F.max("batch")).collect()[0]
    if last is None:
        return ExpireReport(0)
    unwritten = F.lit(False) if files is None else F.col("position") >= files
    old, needed = F.col("batch") <= last, is_needed(request.needed) | unwritten
    found = events.where(old).groupBy("object_id", needed.alias("needed")).count().collect()
    gone = sum(row["count"] for row in found if not row["needed"])
    held = {row["object_id"]: row["count"] for row in found if row["needed"] and row["object_id"]}
    say(f"{gone} events up to batch {last} go; {sum(held.values())} are needed yet")
    stop_if_due()
    if gone:
        until_committed()(_delete, session, log.uri, last, request.needed, files)  # somebody may compact the log
    return ExpireReport(gone, held)


def _delete(session: SparkSession, uri: str, last: int, needed: Mapping[str, LogPosition], files: str | None) -> None:
    """By SQL: Delta's own API needs a plugin in a server of Spark Connect."""
    kept = "".join(f" AND NOT coalesce({_needed_text(source_id, at)}, false)" for source_id, at in needed.items())
    written = "" if files is None else f" AND position < {string_literal(files)}"
    schemas = string_literal(Change.SCHEMA.value)
    session.sql(f"DELETE FROM {path_name(uri)} WHERE batch <= {last} AND change <> {schemas}{written}{kept}")


def _needed_text(source_id: str, at: LogPosition) -> str:
    """`is_needed` for one object, as SQL."""
    commit = string_literal(at.commit)
    behind = f"position > {commit} OR (position = {commit} AND sequence >= {at.sequence})"
    return f"object_id <=> {string_literal(source_id)} AND ({behind})"


def is_needed(needed: Mapping[str, LogPosition]) -> Column:
    """Whether an event is at the position from which its object needs events, or behind it."""
    if not needed:
        return F.lit(False)
    places = [
        (F.lit(source_id), F.struct(F.lit(at.commit).alias("commit"), F.lit(at.sequence).alias("sequence")))
        for source_id, at in needed.items()
    ]
    since = F.element_at(F.create_map(*(one for pair in places for one in pair)), F.col("object_id"))
    return F.coalesce(from_place(since["commit"], since["sequence"]), F.lit(False))
