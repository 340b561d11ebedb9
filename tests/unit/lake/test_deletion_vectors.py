"""Deletion vectors read as written, and refused where a byte is wrong."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tidemark.errors import CorruptLog
from tidemark.lake import deletion_vectors
from tidemark.lake.storage import Storage
from tidemark.model.table_log import DeletionVector, UnstoredVector

ROWS = st.sets(st.integers(min_value=0, max_value=2**34), max_size=50)


def stored(directory: Path, rows: BitMap64, offset: int = 1) -> DeletionVector:
    data = struct.pack("<I", 1681511377) + rows.serialize()
    body = b"\x01" * offset + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (directory / "v.bin").write_bytes(body)
    return DeletionVector("p", f"file://{directory}/v.bin", len(data), len(rows), offset)


@given(rows=ROWS)
def test_an_inline_vector_holds_its_rows(tmp_path_factory: pytest.TempPathFactory, rows: set[int]) -> None:
    storage = Storage(str(tmp_path_factory.getbasetemp()))
    assert set(deletion_vectors.load(deletion_vectors.inline(BitMap64(rows)), storage.uri, storage)) == rows


def test_a_stored_vector_holds_its_rows(tmp_path: Path) -> None:
    vector = stored(tmp_path, BitMap64([1, 5, 2**33]), offset=9)
    storage = Storage(str(tmp_path))
    assert set(deletion_vectors.load(vector, storage.uri, storage)) == {1, 5, 2**33}


@pytest.mark.parametrize("position", [1, 5, 12, -1])
def test_one_wrong_byte_is_a_corrupt_log(tmp_path: Path, position: int) -> None:
    vector = stored(tmp_path, BitMap64([1, 5]))
    body = bytearray((tmp_path / "v.bin").read_bytes())
    body[position] ^= 0xFF
    (tmp_path / "v.bin").write_bytes(bytes(body))
    storage = Storage(str(tmp_path))
    with pytest.raises(CorruptLog):
        deletion_vectors.load(vector, storage.uri, storage)


def test_a_wrong_cardinality_is_a_corrupt_log(tmp_path: Path) -> None:
    inline = deletion_vectors.inline(BitMap64([1, 2]))
    wrong = DeletionVector("i", inline.path_or_inline, inline.size_in_bytes, 3)
    storage = Storage(str(tmp_path))
    with pytest.raises(CorruptLog):
        deletion_vectors.load(wrong, storage.uri, storage)


def test_a_relative_vector_becomes_absolute() -> None:
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 1, 1)
    absolute = deletion_vectors.absolute(vector, "file:///lake/a b")
    expected = "file:///lake/a%20b/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert (absolute.storage_type, absolute.path_or_inline, absolute.offset) == ("p", expected, 1)


def scattered(rows: int) -> BitMap64:
    """A vector of about four bytes a row."""
    return BitMap64(range(0, rows * 50, 50))


def test_a_vector_is_inline_as_long_as_a_reader_takes_its_text() -> None:
    """Delta's readers write the text by Java's `writeUTF`, which ends at 65,535 bytes."""
    largest = deletion_vectors.inline(BitMap64())
    for rows in range(0, 100_000, 500):
        vector = deletion_vectors.made(scattered(rows))
        if isinstance(vector, UnstoredVector):
            assert len(vector.data) > deletion_vectors.LARGEST_INLINE
            break
        largest = vector
    else:
        pytest.fail("no vector was too large")
    assert deletion_vectors.LARGEST_INLINE - 1500 < largest.size_in_bytes <= deletion_vectors.LARGEST_INLINE
    assert len(largest.path_or_inline) < 65_535


def test_a_file_holds_vectors_one_behind_the_other(tmp_path: Path) -> None:
    rows = [scattered(40_000), BitMap64([2**33]) | scattered(50_000)]
    file = deletion_vectors.VectorFile(f"file://{tmp_path}/a%20b.bin")
    assert file.empty
    vectors = [deletion_vectors.made(each) for each in rows]
    stored = [file.put(vector) for vector in vectors if isinstance(vector, UnstoredVector)]
    (tmp_path / "a b.bin").write_bytes(file.content)
    assert len(file.content) == file.size
    storage = Storage("/elsewhere")
    assert [deletion_vectors.load(vector, storage.uri, storage) for vector in stored] == rows
    assert [vector.storage_type for vector in stored] == ["p", "p"]
    assert len({vector.unique_id for vector in vectors}) == 2


def test_an_inline_vector_of_another_writer_moves_into_a_file_if_it_is_too_large() -> None:
    for rows, kind in ((100, DeletionVector), (40_000, UnstoredVector)):
        inline = deletion_vectors.inline(scattered(rows))
        moved = deletion_vectors.movable(inline, "file:///lake/t")
        assert isinstance(moved, kind)
        assert moved == deletion_vectors.made(scattered(rows))
