"""Files that cannot be read: headers, footers and the probe of whole files agree on what breaks a file."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem

from tidemark.errors import DataFileUnreadable, StorageUnreachable
from tidemark.pipes.driver.footers import read_footers
from tidemark.pipes.driver.headers import headers_of
from tidemark.pipes.driver.probe import broken_texts
from tidemark.pipes.driver.unreadable import GONE, broken_file, may_be_of_a_file, reason_of
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.readers import CsvRead, text_reader

LINES = text_reader(file_format("CSV", {"PARSE_HEADER": True}))
assert isinstance(LINES, CsvRead)
TEXT = b"id,name\n1,ann\n"
BAD = b"\x00\x01\x02 no codec writes this"


class Moody(MemoryFileSystem):
    """A storage that refuses one file, and does not answer for another."""

    protocol = ("moody",)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(path.replace("moody://", "memory://"))

    def _open(self, path: str, *arguments: Any, **more: Any) -> Any:
        if "refused" in path:
            raise PermissionError(13, "Forbidden")
        if "away" in path:
            raise TimeoutError("no answer")
        return super()._open(path, *arguments, **more)


@pytest.fixture
def moody() -> Iterator[str]:
    fsspec.register_implementation("moody", Moody, clobber=True)
    for name in ("a.csv", "refused.csv", "away.csv"):
        MemoryFileSystem().pipe_file(f"/moods/{name}", TEXT)
    yield "moody://moods"
    MemoryFileSystem().rm("/moods", recursive=True)


def header_problem(location: str, file: str) -> str:
    with pytest.raises(DataFileUnreadable) as raised:
        headers_of(location, None, [file], LINES)
    assert broken_file(raised.value, location, [file]) == (file, raised.value.facts["problem"])
    return str(raised.value.facts["problem"])


def test_headers_and_the_probe_give_the_same_files_up_for_the_same_reason(tmp_path: Path, moody: str) -> None:
    location = f"file://{tmp_path}"
    contents = {
        "cut 50%25.csv.gz": gzip.compress(TEXT)[:-10],
        "bad.gz": BAD,
        "bad.bz2": BAD,
        "cut.bz2": bz2.compress(TEXT)[:-10],
        "bad.xz": BAD,
        "bad.zst": BAD,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
    names = [*contents, "folder.csv", "gone.csv"]
    found = broken_texts(location, None, names, lambda: None)
    assert found == {name: header_problem(location, name) for name in names}
    assert found["gone.csv"] == GONE
    assert broken_texts(moody, None, ["a.csv", "refused.csv"], lambda: None) == {
        "refused.csv": header_problem(moody, "refused.csv"),
    }


def test_whole_files_are_no_problem_in_any_codec(tmp_path: Path) -> None:
    packed = {
        "a.csv": TEXT,
        "a.csv.gz": gzip.compress(TEXT),
        "a.csv.bz2": bz2.compress(TEXT),
        "a.csv.xz": lzma.compress(TEXT),
        "a.csv.zst": zstandard.compress(TEXT),
    }
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
    assert broken_texts(str(tmp_path), None, [*packed], lambda: None) == {}
    assert headers_of(str(tmp_path), None, [*packed], LINES) == (("id", "name"),) * 5


def test_a_storage_that_does_not_answer_breaks_no_file(moody: str) -> None:
    with pytest.raises(StorageUnreachable, match="no answer"):
        broken_texts(moody, None, ["a.csv", "away.csv"], lambda: None)
    with pytest.raises(StorageUnreachable, match="no answer"):
        headers_of(moody, None, ["a.csv", "away.csv"], LINES)
    with pytest.raises(StorageUnreachable, match="no answer"):
        read_footers(moody, None, FileType.PARQUET, ["away.csv"])
    refused, no_parquet = read_footers(moody, None, FileType.PARQUET, ["refused.csv", "a.csv"])
    assert "Forbidden" in (refused.problem or "")
    assert no_parquet.problem is not None


READ_FAILED = """[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://b/a.parquet.  SQLSTATE: KD001
Caused by: {cause}"""


@pytest.mark.parametrize(
    ("text", "may_be"),
    [
        ("[PARQUET_TYPE_ILLEGAL] Illegal Parquet type: INT64 (TIMESTAMP(NANOS,true)). SQLSTATE: 42846", True),
        ("[INTERNAL_ERROR] x\nCaused by: java.lang.ArrayIndexOutOfBoundsException: 7", True),
        ("x\nCaused by: java.net.ConnectException: Connection refused", False),
        ("x\nCaused by: java.net.URISyntaxException: a:b", True),
        ("[TASK_WRITE_FAILED] x\nCaused by: java.io.IOException: No space left on device", False),
        ("s3://b/a: getFileStatus: com.amazonaws.services.s3.model.AmazonS3Exception: Forbidden", False),
        ("[DELTA_METADATA_CHANGED] MetadataChangedException: x", False),
        ("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint c", False),
        ("Failed to find data source: avro.", False),
    ],
)
def test_a_failure_without_a_file_is_looked_into_unless_it_is_of_the_storage_the_target_or_a_package(
    text: str, may_be: bool
) -> None:
    assert may_be_of_a_file(RuntimeError(text)) is may_be


def test_a_storage_that_goes_away_during_a_read_breaks_no_file() -> None:
    damaged = RuntimeError(READ_FAILED.format(cause="org.apache.parquet.io.ParquetDecodingException: no magic number"))
    assert broken_file(damaged, "s3://b", ["a.parquet"]) == ("a.parquet", reason_of(damaged))
    away = RuntimeError(READ_FAILED.format(cause="java.net.SocketTimeoutException: Read timed out"))
    assert broken_file(away, "s3://b", ["a.parquet"]) is None
    assert not may_be_of_a_file(away)
