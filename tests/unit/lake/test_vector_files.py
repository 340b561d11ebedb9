"""Vectors that a log-only table's log cannot hold, in files beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyroaring import BitMap64

from tidemark.changes.driver import vector_files
from tidemark.changes.driver.vector_files import with_stored_vectors
from tidemark.changes.planning.sets.plan import Origin, PlannedFile
from tidemark.jobs.workspace import Workspace
from tidemark.lake import deletion_vectors
from tidemark.lake.orphans import sweep_directories
from tidemark.lake.storage import Storage
from tidemark.model.table_log import DeletionVector, UnstoredVector


def planned(vector: DeletionVector | UnstoredVector | None, path: str = "file:///t/1.parquet") -> PlannedFile:
    return PlannedFile(
        origin=Origin.ADDED,
        path=path,
        size=1,
        rows=1,
        partition_columns=(),
        partition_values={},
        stats=None,
        deletion_vector=vector,
        base_row_id=0,
        default_row_commit_version=0,
    )


def large(first: int) -> BitMap64:
    return BitMap64(range(first, 2_000_000, 50))


def test_small_vectors_write_nothing(tmp_path: Path) -> None:
    files = [planned(None), planned(deletion_vectors.inline(BitMap64([1])))]
    with Workspace(str(tmp_path), "w") as workspace:
        assert with_stored_vectors(files, workspace.new_directory(), workspace) == files
        assert list(tmp_path.rglob("*.bin")) == []


@pytest.mark.parametrize("bytes_per_file", [1, 1 << 20])
def test_large_vectors_stand_in_files_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_per_file: int
) -> None:
    monkeypatch.setattr(vector_files, "_BYTES_PER_FILE", bytes_per_file)
    rows = [large(first) for first in range(3)]
    files = [planned(deletion_vectors.made(each), f"file:///t/{n}.parquet") for n, each in enumerate(rows)]
    with Workspace(f"file://{tmp_path}/it's 100% a+b #ü", "w") as workspace:
        directory = workspace.new_directory()
        for _ in range(2):  # a second run overwrites
            stored = with_stored_vectors(files, directory, workspace)
        storage = Storage("/elsewhere")
        vectors = [file.deletion_vector for file in stored if isinstance(file.deletion_vector, DeletionVector)]
        assert [deletion_vectors.load(vector, storage.uri, storage) for vector in vectors] == rows
        assert len(list(tmp_path.rglob("deletion_vectors_*.bin"))) == (3 if bytes_per_file == 1 else 1)
    assert list(tmp_path.rglob("*.bin")) == []


def test_what_a_killed_job_has_left_is_swept(tmp_path: Path) -> None:
    """Killed before it wrote the log, and before it wrote anything."""
    dead = Workspace(str(tmp_path), "dead")
    with_stored_vectors([planned(deletion_vectors.made(large(0)))], dead.new_directory(), dead)
    Path(dead.new_directory(), "_delta_log").mkdir(parents=True)
    for hours, removed in ((-1, 0), (1, 2)):
        swept = sweep_directories(dead.root, older_than=datetime.now(UTC) + timedelta(hours=hours))
        assert len(swept.removed) == removed
    assert list((tmp_path / "log_only").iterdir()) == []
