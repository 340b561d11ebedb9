"""Inputs and outputs of a task, from its stored transaction and from the logs of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attr
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    dataset_version_dataset,
    output_statistics_output_dataset,
    sql_job,
)

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import QUARANTINED
from tidemark.errors import TidemarkError
from tidemark.lake.delta_log import DeltaLog
from tidemark.lineage.columns import column_lineage, schema
from tidemark.lineage.datasets import name_of
from tidemark.model.statements import Evidence, PlannedWrite, Statement, TransactionKey, WriteAs
from tidemark.model.streams import BaseWindow, StreamWindow, TableRef
from tidemark.model.table_log import Metadata
from tidemark.streams.store import transactions
from tidemark.streams.worker.streams import get_stream

__all__ = ["DeliveryFacet", "Tables", "WindowFacet", "lineage_of_plan", "lineage_of_transaction"]

Tables = Callable[[TableRef | str], DeltaLog]
Lineage = OperatorLineage[Any, Any]


Read = Mapping[tuple[TableRef, int], Metadata | None]
"""The columns of each table that was read, at the version at the end of its window."""


@attr.define
class WindowFacet(InputDatasetFacet):
    """`tidemark_window`: the versions (fromVersion, toVersion] of the source that a stream delivered."""

    stream: str
    mode: str
    kind: str
    fromVersion: int
    toVersion: int


@attr.define
class DeliveryFacet(OutputDatasetFacet):
    """`tidemark_delivery`: the numbers of the target's rows; `found`: an earlier attempt had written them."""

    inserted: int
    updated: int
    deleted: int
    found: bool


def lineage_of_plan(store: ControlStore, streams: Sequence[str], writes: Sequence[PlannedWrite]) -> Lineage:
    """Inputs and outputs that the task plans, by name, if it has no window. Raises StreamNotFound."""
    sources = {base.table.path: None for name in streams for base in get_stream(store, name).bases}
    return OperatorLineage(
        inputs=[_input(uri) for uri in (*sources, *_read_beside(writes))],
        outputs=[OutputDataset(*name_of(uri)) for uri in dict.fromkeys(write.tables[write.target] for write in writes)],
        job_facets=_sql(writes),
    )


def lineage_of_transaction(store: ControlStore, key: TransactionKey, part: slice, tables: Tables) -> Lineage | None:
    """Inputs and outputs of `part` of the transaction's statements; None if it has none, or does not exist.

    Inputs have the version at the end of the window, outputs the version of the commit and its rows. A statement that
    is not done has an output without them. Other tables that SQL or a function reads have no version, since none is
    pinned.
    """
    try:
        stored = store.read(lambda connection: transactions.latest(connection, key))
    except TidemarkError:
        return None
    statements = stored.transaction.plan.statements[part]
    if not statements:
        return None
    writes = [statement.write for statement in statements]
    windows = [window for window in stored.transaction.windows if _reads(writes, window)]
    read = {(base.table, base.end): _metadata(tables, base.table, base.end) for w in windows for base in w.bases}
    return OperatorLineage(
        inputs=[_window(window, base, read) for window in windows for base in window.bases]
        + [_input(uri) for uri in _read_beside(writes)],
        outputs=[_written(one, stored.evidence.get(one.number), windows, read, tables) for one in statements],
        job_facets=_sql(writes),
    )


def _reads(writes: Sequence[PlannedWrite], window: StreamWindow) -> bool:
    """Whether a write reads the window. Append and merge name their stream; SQL and functions may read any."""
    return any(write.source is None or write.source.casefold() == window.stream_name.casefold() for write in writes)


def _read_beside(writes: Sequence[PlannedWrite]) -> dict[str, None]:
    targets = {write.tables[write.target] for write in writes}
    return {uri: None for write in writes for uri in write.tables.values() if uri not in targets}


def _input(uri: str, facets: Mapping[str, DatasetFacet] | None = None, **input_facets: Any) -> InputDataset:
    return InputDataset(*name_of(uri), facets=dict(facets or {}), inputFacets=input_facets)


def _window(window: StreamWindow, base: BaseWindow, read: Read) -> InputDataset:
    facet = WindowFacet(window.stream_name, window.mode.value, window.kind.value, base.start, base.end)
    versioned = _versioned(base.end, read[base.table, base.end])
    return _input(base.table.path, versioned, tidemark_window=facet)


def _written(
    statement: Statement,
    evidence: Evidence | None,
    windows: Sequence[StreamWindow],
    read: Read,
    tables: Tables,
) -> OutputDataset:
    named = name_of(statement.target.path)
    if evidence is None:
        return OutputDataset(*named)
    metadata = _metadata(tables, statement.target, evidence.commit_version)
    facets = _versioned(evidence.commit_version, metadata)
    for window in (one for one in windows if one.view is None):  # a view's columns are not traced
        before = read[window.source, window.end]
        if _reads([statement.write], window) and before is not None and metadata is not None:
            columns = column_lineage(statement.write, name_of(window.source.path), before, metadata)
            facets |= {} if columns is None else {"columnLineage": columns}
    inserted, updated, deleted = (evidence.rows.get(name, 0) for name in ("inserted", "updated", "deleted"))
    inserted += evidence.rows.get(QUARANTINED, 0)
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=inserted + updated)
    delivery = DeliveryFacet(inserted, updated, deleted, evidence.found)
    return OutputDataset(
        *named, facets=facets, outputFacets={"outputStatistics": statistics, "tidemark_delivery": delivery}
    )


def _versioned(version: int, metadata: Metadata | None) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {"version": dataset_version_dataset.DatasetVersionDatasetFacet(str(version))}
    return facets if metadata is None else {**facets, "schema": schema(metadata)}


def _metadata(tables: Tables, table: TableRef, version: int) -> Metadata | None:
    """The table's columns at that version; None if the lake cannot be read now."""
    try:
        return tables(table).state(version).metadata
    except TidemarkError:
        return None


def _sql(writes: Sequence[PlannedWrite]) -> dict[str, Any]:
    texts = [write.sql for write in writes if write.write_as is WriteAs.SQL and write.sql]
    return {"sql": sql_job.SQLJobFacet(query=";\n".join(texts))} if texts else {}
