"""What no stream can read is refused when the stream is created, from the log alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import add, born
from tidemark.changes.worker.sources import require_stream_source
from tidemark.errors import RowTrackingDisabled, UnsupportedTableFeature

TRACKED = {"delta.enableRowTracking": "true"}


def test_a_tracked_table_with_files_of_its_own_is_read(tmp_path: Path) -> None:
    require_stream_source(born(tmp_path, add("p=a%3Ab/part-0.parquet"), **TRACKED), "t")


def test_a_shallow_clone_is_read(tmp_path: Path) -> None:
    require_stream_source(born(tmp_path, add("file:///lake/origin/part-0.parquet"), **TRACKED), "t")


def test_a_table_of_a_catalog_is_refused(tmp_path: Path) -> None:
    log = born(tmp_path, add("part-0.parquet"), **TRACKED)
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    commit.write_text(commit.read_text().replace('"rowTracking"', '"rowTracking", "catalogManaged"'))
    with pytest.raises(
        UnsupportedTableFeature, match=r"'catalogManaged'.*catalog's, so its log cannot be read by path"
    ):
        require_stream_source(log, "t")


def test_a_table_without_row_tracking_is_refused_with_the_alter(tmp_path: Path) -> None:
    with pytest.raises(RowTrackingDisabled, match=r"ALTER TABLE delta.`/t` SET TBLPROPERTIES"):
        require_stream_source(born(tmp_path), "delta.`/t`")
