"""Inputs and outputs of a replication's tasks: tables of a database, the event log, targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import output_statistics_output_dataset

from tidemark.lake.storage import canonical_uri
from tidemark.lineage.datasets import name_of
from tidemark.model.source_address import SourceAddress

__all__ = ["lineage_of_move", "source_dataset"]

Dataset = tuple[str, str]
"""Namespace and name."""


def source_dataset(address: SourceAddress, object_name: str) -> Dataset:
    """A table of a database by OpenLineage's naming rules: `postgres://host:5432` and `shop.public.orders`, or
    `mysql://host:3306` and `shop.orders`. Of landed envelopes and event files: where they are, and the table.
    """
    if address.kind.is_landed:
        topics = address.database.removeprefix("kafka:")
        return (f"kafka://{address.host}" if address.host else canonical_uri(address.database)), (
            f"{topics}/{object_name}" if address.host else object_name
        )
    if address.kind.logs_by_file:
        return f"mysql://{address.host}:{address.port}", object_name
    return f"postgres://{address.host}:{address.port}", f"{address.database}.{object_name}"


def lineage_of_move(inputs: Sequence[Dataset], output: str, rows: int) -> OperatorLineage[Any, Any]:
    """The lineage of rows from `inputs` to the Delta table or the files at `output`, a canonical URI."""
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    written = OutputDataset(*name_of(output), outputFacets={"outputStatistics": statistics})
    return OperatorLineage(inputs=[InputDataset(*one) for one in inputs], outputs=[written])
