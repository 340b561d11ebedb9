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
    """(file, at, batch) of batches, by their names below the location. Batches of an earlier statement may be of
    another.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    heads = rows.filter(pc.equal(rows["event"], Event.BATCH.value)).select(["batch", "statement"]).to_pylist()
    places = {head["batch"]: _place_of(head["statement"], location) for head in heads}
    planned = rows.filter(pc.equal(rows["event"], Event.PLANNED.value))
    number = pc.index_in(planned["batch"], pa.array(places, pa.int64())).combine_chunks()
    return _below(planned, pa.array(places.values(), pa.string()).take(number), location)


def _place_of(statement: str | None, location: str) -> str:
    try:
        return location if statement is None else from_json(Load, statement).location
    except ValueError:  # of another release
        return location


def _below(rows: pa.Table, places: pa.Array, location: str) -> pa.Table:
    """(file, at, batch) of the rows that are below the location, by their names there. `places`: of the rows; NULL: the
    location.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, here = rows.select(["file", "at", "batch"]), f"{location.rstrip('/')}/"
    places = pc.binary_join_element_wise(pc.utf8_rtrim(places, "/"), "", "/")
    is_other = pc.fill_null(pc.not_equal(places, here), False)
    others = rows.filter(is_other)
    whole = pc.binary_join_element_wise(places.filter(is_other), others["file"], "")
    moved = others.set_column(0, "file", pc.utf8_slice_codeunits(whole, len(here)))
    return pa.concat_tables([rows.filter(pc.invert(is_other)), moved.filter(pc.starts_with(whole, here))])


def _names(rows: pa.Table, location: str, *, unfinished: bool) -> QueueNames:
    """A file waits if it belonged to no batch, or was asked for again since. A file that was only named waits once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    planned = _planned(rows, location)
    copied = rows.filter(pc.equal(rows["event"], Event.COPIED.value))
    copied = _below(copied, copied["source"].combine_chunks(), location)
    queued = _asked(rows.filter(pc.equal(rows["event"], Event.QUEUED.value)))
    last = planned.filter(pc.is_in(planned["file"], queued["file"].combine_chunks())).group_by("file")
    both = queued.join(last.aggregate([("at", "max"), ("batch", "max")]), "file")
    is_later = pc.or_kleene(
        pc.less_equal(both["batch_max"], both["again_after_max"]), pc.less(both["at_max"], both["again_at_max"])
    )
    waits = pc.or_kleene(pc.is_null(both["at_max"]), is_later)
    names = pc.unique(pa.concat_tables([planned, copied])["file"])
    return QueueNames(
        names if isinstance(names, pa.Array) else names.combine_chunks(),
        both.filter(waits)["file"].combine_chunks(),
        unfinished,
    )


def _asked(queued: pa.Table) -> pa.Table:
    """(file, again_after_max, again_at_max): the last batch that was planned before somebody asked for the file again.
    An earlier release has stored only the time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    told = pc.is_in(queued["source"], pa.array([str(one) for one in TOLD]))
    after = pc.if_else(told, pa.scalar(None, pa.int64()), queued["batch"])
    is_timed = pc.and_(pc.invert(told), pc.is_null(queued["batch"]))
    at = pc.if_else(is_timed, queued["at"], pa.scalar(None, queued["at"].type))
    asked = queued.select(["file"]).append_column("again_after", after).append_column("again_at", at)
    return asked.group_by("file").aggregate([("again_after", "max"), ("again_at", "max")])


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
                raise CorruptLog(file=path, problem=f"it is not a file of a queue: {error}") from error


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
