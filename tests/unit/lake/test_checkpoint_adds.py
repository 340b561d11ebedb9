"""The files in checkpoints, classic and V2 with sidecars, are those of the commits that they replace."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.lake.delta_directories import add, born, commit
from tests.unit.lake.golden_logs import GOLDEN, NAMES
from tidemark.errors import CorruptLog, LogIncomplete
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.file_ranges import file_ranges
from tidemark.lake.live_files import live_files
from tidemark.model.file_ranges import FileRanges, KeyColumn
from tidemark.model.table_log import AddFile

K = KeyColumn("k", ("k",), "integer")


def files_of(log: DeltaLog, version: int) -> list[AddFile]:
    """A checkpoint says nothing about changes of data."""
    return sorted((replace(file, data_change=False) for file in live_files(log, version)), key=lambda file: file.path)


def ranges_of(log: DeltaLog, version: int) -> tuple[FileRanges, list[int]]:
    """The ranges, whose files have no order, and their sizes."""
    found = file_ranges(log, version, [K])
    return replace(found, boxes=found.boxes.of([]), sizes=(), cubes=()), sorted(found.sizes)


@pytest.mark.parametrize("name", NAMES)
def test_files_in_checkpoints_are_those_of_the_commits(tmp_path: Path, name: str) -> None:
    shutil.copytree(GOLDEN / name, tmp_path / "t")
    for checkpoint in (tmp_path / "t" / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    plain, kept = DeltaLog.open(str(tmp_path / "t")), DeltaLog.open(str(GOLDEN / name))
    assert kept.checkpoint_at_or_before(7) is not None
    assert plain.checkpoint_at_or_before(7) is None
    for version in range(8):
        assert files_of(kept, version) == files_of(plain, version), version
        assert ranges_of(kept, version) == ranges_of(plain, version), version


def test_a_sidecar_that_is_gone_is_said(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "exact_times", tmp_path / "t")
    log = DeltaLog.open(str(tmp_path / "t"))
    shutil.rmtree(tmp_path / "t" / "_delta_log" / "_sidecars")
    for read in (live_files, lambda log, version: file_ranges(log, version, [K])):
        with pytest.raises(LogIncomplete):
            read(log, 7)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_sidecar_may_be_named_by_an_absolute_path(tmp_path: Path, scheme: str) -> None:
    log = born(tmp_path, add("a"))
    commit(tmp_path, 1, add("b"))
    pq.write_table(pa.table({"add": pa.array([{"path": "a", "size": 1}])}), tmp_path / "at home.parquet")
    rows = pa.table({"sidecar": pa.array([{"path": f"{scheme}{quote(str(tmp_path))}/at%20home.parquet"}])})
    pq.write_table(rows, tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet")
    assert file_ranges(log, 1, [K]).without == ("a",)


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"add": pa.array([{"size": 1}])}),
        pa.table({"add": pa.array([{"other": 1}])}),
        pa.table({"add": pa.array([{"path": None, "size": 1}])}),
        pa.table({"add": pa.array([1])}),
        pa.table({"sidecar": pa.array([{"path": None, "sizeInBytes": 1}])}),
    ],
)
def test_garbage_in_a_checkpoint_is_a_corrupt_log(tmp_path: Path, rows: pa.Table) -> None:
    log = born(tmp_path, add("a"))
    commit(tmp_path, 1, add("b"))
    pq.write_table(rows, tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet")
    for read in (live_files, lambda log, version: file_ranges(log, version, [K])):
        with pytest.raises(CorruptLog):
            read(log, 1)
