"""Looks at a table's clustering, from its log alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemark.clustering.model.information import ClusteringInformation, FailedRecluster
from tidemark.clustering.model.tables import How, Layer, Seen
from tidemark.clustering.planning.depth import depths_of
from tidemark.clustering.planning.information import information_of, layers_of
from tidemark.clustering.planning.keys import key_columns, key_of
from tidemark.clustering.planning.upkeep import bounded
from tidemark.clustering.store import reclusterings, tables
from tidemark.control.store import ControlStore
from tidemark.errors import ClusteringKeyMissing, InvalidArgument
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_ranges import added_ranges, file_ranges
from tidemark.model.file_ranges import Bound, FileRanges
from tidemark.model.table_log import TableState

__all__ = ["Look", "clustering_information", "look_at", "seen_after", "seen_now"]

_ERRORS = 10  # of SYSTEM$CLUSTERING_INFORMATION, as in the source system


@dataclass(frozen=True)
class Look:
    """All files of a table, measured. `layers`: by the clustering run that wrote them."""

    files: FileRanges
    layers: tuple[Layer, ...]
    seen: Seen


def clustering_information(
    store: ControlStore, log: DeltaLog, columns: Sequence[str] | None = None, *, table: str, errors: int = _ERRORS
) -> ClusteringInformation:
    """The state of the table's clustering by these columns, by default those of its key. Needs no Spark.

    `table`: its name, for errors. Raises ClusteringKeyMissing, ClusteringKeyRefused, TableNotFound, CorruptLog.
    """
    state = log.state()
    names = tuple(columns or ()) or key_of(state)
    if not names:
        raise ClusteringKeyMissing(table=table)
    files = file_ranges(log, state.version, key_columns(state, names, table=table))
    return information_of(files, _errors(store, state.table_id, errors))


def look_at(
    log: DeltaLog,
    state: TableState,
    key: Sequence[str],
    known: Seen | None,
    *,
    table: str,
    within: Sequence[Bound] = (),
) -> Look:
    """All files of the table, by the columns of its key, or those that can have rows within the bounds. `known`: the
    last look, whose averages are kept. Raises InvalidArgument for a bound of another column.
    """
    columns = key_columns(state, key, table=table)
    names = {column.name.casefold(): column.name for column in columns}
    for bound in within:
        if bound.column.casefold() not in names:
            problem = f"{bound.column} is not in the clustering key ({', '.join(names.values())})"
            raise InvalidArgument(argument="where", value=bound.column, problem=problem)
    bounds = [replace(bound, column=names[bound.column.casefold()]) for bound in within]
    files = file_ranges(log, state.version, columns, bounds)
    found, layers = depths_of(files.boxes), layers_of(files, key)
    seen = Seen(
        version=state.version,
        depth=found.average_depth,
        largest=found.largest,
        files=len(files.boxes),
        bytes=files.bytes,
        layer_bytes=None if known is None else known.layer_bytes,
        floor=None if known is None else known.floor,
        without=sum(layer.without for layer in layers if layer.cube is None or not layer.keeps),
    )
    return Look(files, layers, seen)


def seen_after(look: Look, how: How) -> Seen:
    """The state of a table after a reclustering. A full rewrite sets the floor, by its result alone. Files of other
    writers do not count.
    """
    if how is not How.FULL:
        return look.seen
    results = [one.depth for one in look.layers if one.cube is not None and one.keeps]
    return replace(look.seen, floor=max(results, default=look.seen.floor))


def seen_now(log: DeltaLog, state: TableState, key: Sequence[str], seen: Seen | None, *, table: str) -> Seen | None:
    """The state of the table now, by the commits since the last look. Their files alone are read: depths
    grow at most by those of the new files. None if that look is missing or the commits are. After removals of
    files it is None, too: the average of the other files may be higher.
    """
    if seen is None or seen.without is None or seen.version > state.version:
        return None
    if seen.version == state.version:
        return seen
    if not log.goes_on_from(seen.version):
        return None
    files = added_ranges(log, seen.version, state.version, key_columns(state, key, table=table))
    if files is None or files.without:
        return None
    depth = depths_of(files.boxes).largest
    return bounded(seen, version=state.version, files=len(files.boxes), bytes=files.bytes, depth=depth)


def _errors(store: ControlStore, table_id: str, most: int) -> tuple[FailedRecluster, ...]:
    table = store.read(lambda connection: tables.lookup_table(connection, table_id))
    if table is None or most < 1:
        return ()
    found = store.read(lambda connection: reclusterings.failures(connection, table.uid, most))
    return tuple(
        FailedRecluster((one.ended_at or one.planned_at).isoformat(timespec="seconds"), one.error or one.why)
        for one in found
    )
