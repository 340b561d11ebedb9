"""First lines of CSV files: several are read at once, and each belongs to its file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tidemark.errors import DataFileUnreadable
from tidemark.pipes.driver.headers import headers_of
from tidemark.pipes.driver.probe import broken_texts
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.readers import CsvRead, text_reader

LINES = text_reader(file_format("CSV", {"PARSE_HEADER": True}))
assert isinstance(LINES, CsvRead)


class Meeting(MemoryFileSystem):
    """A storage that gives no file before eight are asked for."""

    protocol = ("meeting",)
    asked: ClassVar[Barrier]

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return super()._strip_protocol(path.replace("meeting://", "memory://"))

    def _open(self, *arguments: Any, **more: Any) -> Any:
        try:
            self.asked.wait(20)
        except BrokenBarrierError:
            raise OSError(5, "fewer than eight readers came") from None
        return super()._open(*arguments, **more)


@pytest.fixture
def meeting() -> Iterator[MemoryFileSystem]:
    fsspec.register_implementation("meeting", Meeting, clobber=True)
    Meeting.asked = Barrier(8)
    yield MemoryFileSystem()
    MemoryFileSystem().rm("/headers", recursive=True)


def test_eight_headers_are_read_at_once_and_each_belongs_to_its_file(meeting: MemoryFileSystem) -> None:
    names = [f"{number}.csv" for number in range(32)]
    for name in names:
        meeting.pipe_file(f"/headers/{name}", f"id,c{name}\n1,2\n".encode())
    assert headers_of("meeting://headers", None, names[::-1], LINES) == tuple(("id", f"c{n}") for n in names[::-1])


def test_the_first_file_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "empty.csv").touch()
    assert headers_of(str(tmp_path), None, ["empty.csv", "a.csv"], LINES) == ((), ("id",))
    with pytest.raises(DataFileUnreadable, match=r"b\.csv.*it no longer exists"):
        headers_of(str(tmp_path), None, ["a.csv", "b.csv", "c.csv"], LINES)


def test_a_first_line_ends_where_spark_ends_it_and_a_blank_one_has_an_empty_name(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("id\u2028x,\x0cname\x85y\r1,2\r")
    (tmp_path / "blank.csv").write_text("\nid\n1\n")
    (tmp_path / "only blanks.csv").write_text("\n\n")
    found = headers_of(str(tmp_path), None, ["odd.csv", "blank.csv", "only blanks.csv"], LINES)
    assert found == (("id\u2028x", "name\x85y"), ("",), ())


def names_of(place: Path, name: str, content: bytes, **options: Any) -> tuple[str, ...]:
    (place / name).write_bytes(content)
    read = text_reader(file_format("CSV", {"PARSE_HEADER": True, **options}))
    assert isinstance(read, CsvRead)
    return headers_of(str(place), None, [name], read)[0]


@pytest.mark.parametrize(
    ("content", "options", "names"),
    [
        ('"a\nx",b\n1,2\n', {}, ("a\nx", "b")),
        ('"a\r\nx",b\r\n1,2\r\n', {}, ("a\r\nx", "b")),
        ('"a\nx",b\n1,2\n', {"MULTI_LINE": False}, ("a",)),
        ('"a ""x""",b\n', {}, ('a "x"', "b")),
        (r'"a \"x\",y",b' + "\n1,2\n", {"ESCAPE": r"\\"}, ('a "x",y', "b")),
        ("a,b\r1,2\r", {}, ("a", "b")),
        ('\ufeff"a",b\n', {}, ("a", "b")),
        ("\na,b\n", {}, ("",)),
    ],
)
def test_a_header_is_the_first_record_of_its_format(
    tmp_path: Path, content: str, options: dict[str, Any], names: tuple[str, ...]
) -> None:
    found = names_of(tmp_path, "a.csv", content.encode(), FIELD_OPTIONALLY_ENCLOSED_BY='"', **options)
    assert found == names


def test_the_header_of_a_deflated_file_is_unpacked(tmp_path: Path) -> None:
    """Spark unpacks such files, too."""
    packed = zlib.compress(b"id,name\n" + b"1,a\n" * 1_000_000)
    assert names_of(tmp_path, "a.csv.deflate", packed) == ("id", "name")
    assert broken_texts(str(tmp_path), None, ["a.csv.deflate"], lambda: None) == {}
    for content, problem in ((b"id,name\n", "incorrect header"), (packed[:-20], "ended before")):
        (tmp_path / "b.csv.deflate").write_bytes(content)
        assert problem in broken_texts(str(tmp_path), None, ["b.csv.deflate"], lambda: None)["b.csv.deflate"]
