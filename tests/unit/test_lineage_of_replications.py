"""Inputs and outputs of a replication's tasks have the names that OpenLineage's rules give them."""

from __future__ import annotations

import pytest

from tidemark.model.source_address import SourceAddress, SourceKind

pytest.importorskip("openlineage.client")

from tidemark.lineage.replication import source_dataset
from tidemark.operators._replication import Transfer, lineage_of


@pytest.mark.parametrize(
    ("kind", "port", "wanted"),
    [
        (SourceKind.POSTGRESQL, 5432, ("postgres://db:5432", "shop.public.orders")),
        (SourceKind.MYSQL, 3306, ("mysql://db:3306", "public.orders")),
        (SourceKind.MARIADB, 3306, ("mysql://db:3306", "public.orders")),
    ],
)
def test_a_table_of_a_source_has_the_name_of_its_kind(kind: SourceKind, port: int, wanted: tuple[str, str]) -> None:
    assert source_dataset(SourceAddress(kind, "db", port, "shop", "me", ""), "public.orders") == wanted


def test_event_files_are_read_from_the_log_and_written_to_a_directory() -> None:
    lineage = lineage_of([Transfer.from_log("file:///lake/events", "s3://acme/shop", 7)])
    assert lineage is not None
    assert [(one.namespace, one.name) for one in lineage.inputs] == [("file", "/lake/events")]
    (written,) = lineage.outputs
    assert (written.namespace, written.name) == ("s3://acme", "shop")
    assert written.outputFacets["outputStatistics"].rowCount == 7
