"""The names of files in a pipe's queue, read from the log and the data files of its Delta table, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tidemark.errors import CorruptLog, TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import is_of_storage
from tidemark.lake.log_age import forgotten_before
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.model.codec import from_json
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import DAY, ENDS, KEPT, PLANS, Event, app_id
from tidemark.pipes.model.files import TOLD

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["QueueNames", "read_queue"]

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class QueueNames:
    """`planned`: names of files that no listing takes, as those of a batch. `waiting`: those that were queued since.
    `unfinished`: a batch is planned and not loaded. `whole`: False if the names cannot be read without Spark.
    `forgotten_before`: files that are older may have been loaded and forgotten, and runs leave them out.
    """

    planned: pa.Array = field(repr=False)
    waiting: pa.Array = field(repr=False)
    unfinished: bool = False
    whole: bool = True
    forgotten_before: datetime | None = None


def read_queue(log: DeltaLog | None, now: datetime, location: str) -> QueueNames:
    """The names in the queue now, below the location of the pipe; none if no run has made its table yet.

    Memory grows by the names of 14 days alone. Raises CorruptLog, StorageUnreachable, StorageRefused.
    """
    import pyarrow as pa

    nothing = pa.array([], pa.string())
    if log is None:
        return QueueNames(nothing, nothing)
    try:
        version = log.head()
    except TableNotFound:
        return QueueNames(nothing, nothing)
    state = log.state(version)
    plans, ends = (state.transactions.get(app_id(state.table_id, kind), 0) for kind in (PLANS, ENDS))
    paths = _paths(log, version, str((now - KEPT).date()))
    if paths is None:
        return QueueNames(nothing, nothing, plans != ends, whole=False)
    rows = pa.Table.from_batches(_rows(log, paths), pa.schema(_fields()))
    return replace(_names(rows, location, unfinished=plans != ends), forgotten_before=forgotten_before(log, now, KEPT))


def _fields() -> list[Any]:
    import pyarrow as pa

    at = pa.timestamp("us", "UTC")
    known = [("event", pa.string()), ("file", pa.string()), ("at", at), ("source", pa.string())]
    return [*known, ("batch", pa.int64()), ("statement", pa.string())]


def _planned(rows: pa.Table, location: str) -> pa.Table:
    """(file, at) of batches, by their names below the location. Batches of an earlier statement may be of another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    here, columns = f"{location.rstrip('/')}/", ["file", "at"]
    heads = rows.filter(pc.equal(rows["event"], Event.BATCH.value)).select(["batch", "statement"])
    places = {head["batch"]: f"{_place_of(head['statement'], location).rstrip('/')}/" for head in heads.to_pylist()}
    others = {batch: place for batch, place in places.items() if place != here}
    planned = rows.filter(pc.equal(rows["event"], Event.PLANNED.value))
    is_other = pc.is_in(planned["batch"], pa.array(list(others), pa.int64()))
    moved = [
        {"file": whole.removeprefix(here), "at": one["at"]}
        for one in planned.filter(is_other).select([*columns, "batch"]).to_pylist()
        if (whole := others[one["batch"]] + one["file"]).startswith(here)
    ]
    kept = planned.filter(pc.invert(is_other)).select(columns)
    return pa.concat_tables([kept, pa.Table.from_pylist(moved, kept.schema)])


def _place_of(statement: str | None, location: str) -> str:
    try:
        return location if statement is None else from_json(Load, statement).location
    except ValueError:  # of another release
        return location


def _names(rows: pa.Table, location: str, *, unfinished: bool) -> QueueNames:
    """A file waits if it belonged to no batch, or was asked for again since. A file that was only named waits once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    planned = _planned(rows, location)
    copied = rows.filter(pc.equal(rows["event"], Event.COPIED.value)).select(["file", "at"])
    events = rows.filter(pc.equal(rows["event"], Event.QUEUED.value))
    asked = _last(events.filter(pc.invert(pc.is_in(events["source"], pa.array([str(one) for one in TOLD])))))
    queued = _last(events)
    again = _last(planned.filter(pc.is_in(planned["file"], queued["file"].combine_chunks())))
    both = queued.join(again, "file", right_suffix="_planned").join(asked, "file", right_suffix="_asked")
    waits = pc.or_kleene(pc.is_null(both["at_max_planned"]), pc.less(both["at_max_planned"], both["at_max_asked"]))
    names = pc.unique(pa.concat_tables([planned, copied])["file"])
    return QueueNames(
        names if isinstance(names, pa.Array) else names.combine_chunks(),
        both.filter(waits)["file"].combine_chunks(),
        unfinished,
    )


def _last(events: pa.Table) -> pa.Table:
    return events.group_by("file").aggregate([("at", "max")])


def _rows(log: DeltaLog, paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The rows of files that were queued, planned, or loaded by COPY INTO, and those of batches."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pa.schema(_fields())
    wanted = pa.array([Event.PLANNED.value, Event.QUEUED.value, Event.COPIED.value, Event.BATCH.value])
    for path in paths:
        with log.storage.open(path) as opened:
            try:
                for batch in pq.ParquetFile(opened).iter_batches(_ROWS_AT_ONCE, columns=schema.names):
                    rows = batch.filter(pc.is_in(batch["event"], wanted))
                    yield pa.record_batch([rows[f.name].cast(f.type, safe=False) for f in schema], schema=schema)
            except (pa.ArrowException, OSError, KeyError) as error:
                if is_of_storage(error):
                    raise
                raise CorruptLog(file=path, problem=f"it is no file of a queue: {error}") from error


def _paths(log: DeltaLog, version: int, first_day: str) -> list[str] | None:
    """The data files of the days from `first_day` on; None if a checkpoint has them in files of its own."""
    checkpoint = log.checkpoint_at_or_before(version)
    days: dict[str, str] = {}
    for name in () if checkpoint is None else checkpoint.names:
        if not name.endswith(".parquet") or not all(part.isdigit() for part in name.split(".")[2:-1]):
            return None
        days.update(_in_checkpoint(log, name))
    for commit in log.commits(-1 if checkpoint is None else checkpoint.version, version):
        for removed in commit.removes:
            days.pop(removed.path, None)
        days.update((added.path, _day(added.partition_values)) for added in commit.adds)
    return [unquote(path) for path, day in days.items() if day >= first_day]


def _in_checkpoint(log: DeltaLog, name: str) -> Iterator[tuple[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with log.storage.open(f"{LOG_DIRECTORY}/{name}") as opened:
        try:
            table = pq.ParquetFile(opened).read(columns=["add.path", "add.partitionValues"])
            adds = table.column("add").combine_chunks().to_pylist() if table.num_columns else []
        except (pa.ArrowException, OSError) as error:
            if is_of_storage(error):
                raise
            raise CorruptLog(file=name, problem=f"not a readable checkpoint: {error}") from error
    for add in adds:
        if add is not None and add.get("path") is not None:
            yield add["path"], _day(dict(add.get("partitionValues") or ()))


def _day(partition: Mapping[str, str | None]) -> str:
    return partition.get(DAY) or ""
