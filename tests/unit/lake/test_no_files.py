"""Pipes, devices and endless files in the directory of a table: each is named, and nothing waits for it.

A test that fails here may hang: a pipe waits for its writer.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap64

from tests.unit.lake.delta_directories import born
from tests.unit.lake.golden_logs import GOLDEN, NAMES
from tidemark.changes.driver.files import physical_rows_of, require_present
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.planning.sets.forms import form_of
from tidemark.errors import CorruptLog, NotADeltaTable, NotAFile, TableNotFound, TidemarkError
from tidemark.lake import deletion_vectors
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import files_of, require_unchanged
from tidemark.lake.listing import table_names
from tidemark.lake.storage import MOST_BYTES, Storage
from tidemark.model.external_tables import DataFile, ExternalTable, FileFormat
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import AddFile, DeletionVector
from tidemark.results.model.answers import WrittenAnswer
from tidemark.results.worker.files import AnswerLost, OpenAnswer

HEAD = 7


def pipe(place: Path) -> None:
    os.mkfifo(place)


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def unix_socket(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # a socket's path may be no longer than 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)
    finally:
        os.chdir(here)


def endless(place: Path) -> None:
    """16 TB of zeros that take no disk; less, where the file system has no such files."""
    with place.open("wb") as file:
        for power in (44, 43, 42, 40, 36):
            try:
                file.truncate(1 << power)
                return
            except OSError:
                continue


KINDS: dict[str, Callable[[Path], None]] = {
    "a named pipe": pipe,
    "a device": device,
    "a socket": unix_socket,
    "bytes": endless,
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / NAMES[0], tmp_path / "t"))


def exchanged(place: Path, kind: str) -> Path:
    """`place`, now of that kind."""
    place.unlink(missing_ok=True)
    KINDS[kind](place)
    return place


def asked(table: Path) -> list[Callable[[], object]]:
    """All that is asked of a log whose last commit is looked at."""
    log = DeltaLog.open(str(table))
    return [
        lambda: log.state(),
        lambda: log.timestamp(HEAD) and list(log.commits(HEAD - 1, HEAD)),
        lambda: log.has_changes(HEAD - 1, HEAD),
        lambda: plan_changes(log, HEAD - 1, HEAD, StreamMode.STANDARD),
    ]


def test_a_commit(table: Path, kind: str) -> None:
    exchanged(table / "_delta_log" / f"{HEAD:020d}.json", kind)
    for ask in asked(table):
        with pytest.raises(NotAFile, match=rf"{HEAD:020d}\.json .* {kind}"):
            ask()


def test_a_checkpoint(table: Path, kind: str) -> None:
    exchanged(table / "_delta_log" / f"{HEAD:020d}.checkpoint.parquet", kind)
    with pytest.raises((NotAFile, CorruptLog), match="checkpoint"):
        DeltaLog.open(str(table)).state()


def test_a_checksum_says_nothing(table: Path, kind: str) -> None:
    right = [ask() for ask in asked(table)]
    exchanged(table / "_delta_log" / f"{HEAD:020d}.crc", kind)
    assert [ask() for ask in asked(table)] == right


def test_a_table_or_a_log_directory(tmp_path: Path, kind: str) -> None:
    KINDS[kind](tmp_path / "table")
    (tmp_path / "other").mkdir()
    KINDS[kind](tmp_path / "other" / "_delta_log")
    for name in ("table", "other"):
        with pytest.raises((NotADeltaTable, TableNotFound)):
            DeltaLog.open(str(tmp_path / name))


def test_a_deletion_vector(tmp_path: Path, kind: str) -> None:
    storage = Storage(str(tmp_path))
    place = exchanged(tmp_path / "v.bin", kind)
    vector = DeletionVector("p", place.as_uri(), 100, 1, 1)
    with pytest.raises((NotAFile, CorruptLog), match=r"v\.bin"):
        deletion_vectors.load(vector, storage.uri, storage)


def test_a_data_file(table: Path, kind: str) -> None:
    log = DeltaLog.open(str(table))
    state, (commit,) = log.state(), log.commits(0, 1)
    form = form_of(commit.adds[0], state.metadata)
    exchanged(table / form.path, kind)
    unsaid = replace(form, stats=None)
    with pytest.raises((NotAFile, CorruptLog), match=kind if kind != "bytes" else "Parquet"):
        physical_rows_of(log, unsaid)
    if kind != "bytes":
        with pytest.raises(NotAFile, match=kind):
            require_present(log, [(table / form.path).as_uri()], 0, 1)


def test_a_file_of_an_external_table(tmp_path: Path, kind: str) -> None:
    (tmp_path / "1.csv").write_text("1")
    outside = ExternalTable("t", tmp_path.as_uri(), FileFormat.CSV, "{}", {}, None)
    known: tuple[DataFile, ...] = files_of(outside)
    (tmp_path / "2.csv").symlink_to(tmp_path / "1.csv")
    (tmp_path / "3.csv").symlink_to(tmp_path / "nowhere")
    assert len(files_of(outside)) == 3
    KINDS[kind](tmp_path / ".hidden")
    KINDS[kind](tmp_path / "4.csv")
    if kind == "bytes":
        assert len(files_of(outside)) == 4
        return
    with pytest.raises(NotAFile, match=rf"4\.csv .* {kind}"):
        files_of(outside)
    exchanged(tmp_path / "1.csv", kind)
    with pytest.raises(TidemarkError, match=kind):
        require_unchanged(outside, known)


@pytest.mark.parametrize(
    ("kind", "size", "offset"), [("i", 1 << 62, None), ("p", 1 << 62, 1), ("p", 1 << 31, 1), ("p", 100, 1 << 62)]
)
def test_a_vector_of_an_absurd_size_or_place(tmp_path: Path, kind: str, size: int, offset: int | None) -> None:
    storage = Storage(str(tmp_path))
    endless(tmp_path / "v.bin")
    inline = deletion_vectors.inline(BitMap64([0, 1, 2])).path_or_inline
    text = inline if kind == "i" else (tmp_path / "v.bin").as_uri()
    with pytest.raises(CorruptLog, match="no writer makes one"):
        deletion_vectors.load(DeletionVector(kind, text, size, 3, offset), storage.uri, storage)


def test_a_file_that_is_said_to_have_more_rows_than_any(table: Path) -> None:
    log = DeltaLog.open(str(table))
    (commit,) = log.commits(0, 1)
    form = form_of(commit.adds[0], log.state().metadata)
    for rows in (1 << 62, 1 << 40):
        said = replace(form, stats=json.dumps({"numRecords": rows}))
        with pytest.raises(CorruptLog, match="no file has this many"):
            physical_rows_of(log, said)


def test_a_large_file_is_read_as_far_as_somebody_asks(tmp_path: Path) -> None:
    endless(tmp_path / "f")
    storage = Storage(str(tmp_path))
    assert storage.read_bytes("f", 0, 10) == bytes(10)
    with pytest.raises(NotAFile, match=f"no more than {MOST_BYTES:,}"):
        storage.read_bytes("f")


GARBAGE = b"PAR1" + b"\xff" * 40 + struct.pack("<I", 40) + b"PAR1"


def test_a_file_whose_footer_is_garbage_is_none(tmp_path: Path) -> None:
    log = born(tmp_path / "table")
    (tmp_path / "table" / "part").write_bytes(GARBAGE)
    form = form_of(AddFile("part", len(GARBAGE), {}, 0, True, None, None, None, None), log.state().metadata)
    with pytest.raises(CorruptLog, match="not a Parquet file"):
        physical_rows_of(log, form)


def test_a_directory_with_such_a_file_and_without_a_commit_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "part-0.parquet").write_bytes(GARBAGE)
    with pytest.raises(NotADeltaTable):
        DeltaLog.open(str(tmp_path))


def test_an_answer_in_such_a_file_is_lost(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(GARBAGE)
    schema = json.dumps({"type": "struct", "fields": []})
    for name in ("part", "missing"):
        with pytest.raises(AnswerLost):
            OpenAnswer(WrittenAnswer(str(tmp_path), (name,), 1, 1, schema, "UTC"), {})


def test_a_name_that_ends_with_a_newline_is_another_name(table: Path) -> None:
    right = [ask() for ask in asked(table)]
    for name in (f"{HEAD + 1:020d}.json\n", f"{HEAD:020d}.checkpoint.parquet\n", f"{HEAD:020d}.crc\n"):
        (table / "_delta_log" / name).write_text("{}")
    assert [ask() for ask in asked(table)] == right
    assert DeltaLog.open(str(table)).head() == HEAD


@pytest.mark.parametrize("name", ["x" * 300, f"{'y/' * 3000}z", "ä" * 200, "loop/a.csv"])
def test_a_name_that_no_file_of_the_disk_can_have_is_one_that_does_not_exist(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert Storage(str(tmp_path), {}).stored_file(name) is None
    assert not Storage(str(tmp_path), {}).exists(name)


def test_a_table_whose_name_has_a_newline_is_found_and_named_in_one_line(tmp_path: Path) -> None:
    born(tmp_path / "a\nb")
    (tmp_path / "c\nd").mkdir()
    assert table_names(str(tmp_path)) == ("`a\nb`",)
    assert DeltaLog.open(str(tmp_path / "a\nb")).head() == 0
    with pytest.raises(TidemarkError, match=r"c\\nd") as found:
        DeltaLog.open(str(tmp_path / "c\nd"))
    assert "\n" not in str(found.value)
    assert found.value.facts["path"].endswith("c\nd")


def test_one_directory_that_may_not_be_read_hides_no_other_table(tmp_path: Path) -> None:
    born(tmp_path / "good")
    born(tmp_path / "schema" / "good")
    (tmp_path / "loop").symlink_to("loop")
    pipe(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "schema" / "loop")
    (tmp_path / "shut").mkdir(mode=0)
    assert table_names(str(tmp_path)) == ("good", "schema.good")
