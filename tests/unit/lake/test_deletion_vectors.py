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
from tidemark.model.table_log import DeletionVector

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
