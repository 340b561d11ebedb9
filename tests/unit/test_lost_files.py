"""Files that VACUUM takes while a query reads them: the failure names what was lost, not only a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tests.unit.lake.delta_directories import add, born, commit, remove
from tidemark.errors import VersionVacuumed
from tidemark.jobs.workspace import Workspace
from tidemark.model.streams import StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.streams.driver.pinned_streams import PinnedStreams

IDS = {"defaultRowCommitVersion": 0, "stats": '{"numRecords": 1}'}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    born(tmp_path, add("old", baseRowId=0, **IDS), **{"delta.enableRowTracking": "true"})
    commit(tmp_path, 1, {"commitInfo": {"operation": "WRITE"}}, add("new", baseRowId=1, **IDS))
    commit(tmp_path, 2, {"commitInfo": {"operation": "DELETE"}}, remove("old"), remove("new"))
    for name in ("old", "new"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def streams(table: Path, kind: WindowKind, start: int, end: int) -> PinnedStreams:
    source = TableRef("source", table.as_uri(), "id-1")
    window = StreamWindow("uid", "s", source, StreamMode.STANDARD, kind, start, end)
    return PinnedStreams(None, (window,), Workspace(f"{table.as_uri()}/work", "test"))  # type: ignore[arg-type]


def unread(file: Path) -> PySparkException:
    return PySparkException(f"[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file {file.as_uri()}.")


@pytest.mark.parametrize(
    ("kind", "ends", "lost"), [(WindowKind.CHANGES, (0, 1), "new"), (WindowKind.INITIAL_ROWS, (0, 0), "old")]
)
def test_a_file_that_is_gone_when_a_read_fails_is_a_lost_window(
    table: Path, kind: WindowKind, ends: tuple[int, int], lost: str
) -> None:
    pinned = streams(table, kind, *ends)
    (table / lost).unlink()
    with pytest.raises(VersionVacuumed, match=f"{lost}.*the stream 's'"), pinned.lost_files_named():
        raise unread(table / lost)


def test_a_failed_read_of_files_that_are_all_there_stays_what_it_was(table: Path) -> None:
    pinned = streams(table, WindowKind.CHANGES, 0, 1)
    with pytest.raises(PySparkException, match="FAILED_READ_FILE"), pinned.lost_files_named():
        raise unread(table / "elsewhere")
    (table / "new").unlink()
    with pytest.raises(PySparkException, match="no read"), pinned.lost_files_named():
        raise PySparkException("no read")
