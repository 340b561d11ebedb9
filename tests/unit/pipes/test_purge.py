"""PURGE removes the files that were loaded, and never one that was replaced since."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tidemark.lake.storage import Storage, canonical_uri
from tidemark.pipes.driver.prepare import FileToLoad
from tidemark.pipes.driver.purge import purge_files
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.files import FileReport, FileStatus

NAMES = ("a.csv", "100%25 b.csv", "deep/c[1].csv")


def planned(place: Path) -> list[FileToLoad]:
    storage = Storage(str(place), {})
    for name in NAMES:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("1\n")
    found = [storage.stored_file(name) for name in NAMES]
    return [FileToLoad(one.name, one.size, one.modified_at) for one in found if one is not None]


def purged(place: Path, files: list[FileToLoad], *, status: FileStatus = FileStatus.LOADED) -> list[str]:
    load = Load(table="t", path="file:///t", location=canonical_uri(str(place)))
    said: list[str] = []
    reports = [FileReport(file.name, status, 2, 1, 1, 0) for file in files]
    purge_files(load, {}, files, reports, said.append)
    return said


def left(place: Path) -> set[str]:
    return {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}


def test_loaded_files_are_removed_by_their_exact_names(tmp_path: Path) -> None:
    files = planned(tmp_path)
    (tmp_path / "100% b.csv").touch()
    (tmp_path / "deep" / "c1.csv").touch()
    assert purged(tmp_path, files) == []
    assert left(tmp_path) == {"100% b.csv", "deep/c1.csv"}
    assert purged(tmp_path, files) == []


def test_a_file_that_was_replaced_after_it_was_planned_stays(tmp_path: Path) -> None:
    files = planned(tmp_path)
    (tmp_path / "a.csv").write_text("other rows\n")
    assert purged(tmp_path, files) == ["left a.csv: it was replaced after it was loaded"]
    assert left(tmp_path) == {"a.csv"}


def test_a_file_of_the_same_size_and_another_time_stays_too(tmp_path: Path) -> None:
    one, *_ = planned(tmp_path)
    assert one.modified_at is not None
    earlier = replace(one, modified_at=one.modified_at - timedelta(seconds=1))
    assert len(purged(tmp_path, [earlier])) == 1
    assert "a.csv" in left(tmp_path)


def test_a_file_without_rows_in_the_table_stays(tmp_path: Path) -> None:
    files = planned(tmp_path)
    assert purged(tmp_path, files, status=FileStatus.LOAD_FAILED) == []
    assert left(tmp_path) == set(NAMES)
