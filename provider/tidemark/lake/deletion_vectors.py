"""Deletion vectors: which rows of a file are gone (Delta protocol, "Deletion Vectors" and "Deletion Vector Format")."""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyroaring import BitMap64

from tidemark.errors import CorruptLog
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import DeletionVector

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage

__all__ = ["absolute", "inline", "load"]

_MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUE = {character: value for value, character in enumerate(_Z85)}
_UUID_LENGTH = 20
_UUID_BYTES = 16


def load(vector: DeletionVector, table_uri: str, storage: Storage) -> BitMap64:
    """The row positions that the vector marks as deleted.

    Raises CorruptLog for a wrong magic number, checksum, size or cardinality, FileNotFoundError for a file gone.
    """
    where = vector.path_or_inline if vector.storage_type != "i" else "an inline deletion vector"
    data = _inline_data(vector) if vector.storage_type == "i" else _stored_data(vector, table_uri, storage)
    if len(data) < 4 or struct.unpack("<I", data[:4])[0] != _MAGIC:
        raise CorruptLog(file=where, problem="a deletion vector does not begin with its magic number")
    try:
        rows = BitMap64.deserialize(data[4:])
    except ValueError as error:
        raise CorruptLog(file=where, problem=f"not a roaring bitmap: {error}") from error
    if len(rows) != vector.cardinality:
        problem = f"a deletion vector holds {len(rows)} rows, the log says {vector.cardinality}"
        raise CorruptLog(file=where, problem=problem)
    return rows


def inline(rows: BitMap64) -> DeletionVector:
    """The vector that holds `rows` within the log itself."""
    compact = BitMap64(rows)
    compact.run_optimize()
    data = struct.pack("<I", _MAGIC) + compact.serialize()
    return DeletionVector(
        storage_type="i", path_or_inline=_z85_encode(data), size_in_bytes=len(data), cardinality=len(rows)
    )


def absolute(vector: DeletionVector, table_uri: str) -> DeletionVector:
    """The same vector, readable from any table: a relative one gets its percent-encoded absolute path."""
    if vector.storage_type == "i":
        return vector
    return DeletionVector(
        storage_type="p",
        path_or_inline=_vector_uri(vector, table_uri),
        size_in_bytes=vector.size_in_bytes,
        cardinality=vector.cardinality,
        offset=vector.offset,
    )


def _vector_uri(vector: DeletionVector, table_uri: str) -> str:
    if vector.storage_type == "p":
        return file_uri(table_uri, vector.path_or_inline)
    prefix, encoded = vector.path_or_inline[:-_UUID_LENGTH], vector.path_or_inline[-_UUID_LENGTH:]
    identity = _z85_decode(encoded)
    if len(identity) != _UUID_BYTES or "\0" in prefix:
        raise CorruptLog(file=vector.path_or_inline[:40], problem="that is no name of a deletion vector")
    name = f"deletion_vector_{uuid.UUID(bytes=identity)}.bin"
    return file_uri(table_uri, quote(f"{prefix}/{name}" if prefix else name))


def _inline_data(vector: DeletionVector) -> bytes:
    return _z85_decode(vector.path_or_inline)[: vector.size_in_bytes]


def _stored_data(vector: DeletionVector, table_uri: str, storage: Storage) -> bytes:
    """On disk: a 4-byte big-endian size, the data, its CRC-32; at the vector's offset."""
    name = _vector_uri(vector, table_uri)
    start = vector.offset or 0
    try:
        stored = storage.read_bytes(name, start, start + 4 + vector.size_in_bytes + 4)
    except IsADirectoryError as error:
        raise CorruptLog(file=name, problem="it is a directory") from error
    if len(stored) < 8 or struct.unpack(">I", stored[:4])[0] != vector.size_in_bytes:
        raise CorruptLog(file=name, problem=f"the deletion vector at {start} has not the size that the log says")
    data, checksum = stored[4:-4], struct.unpack(">I", stored[-4:])[0]
    if zlib.crc32(data) != checksum:
        raise CorruptLog(file=name, problem=f"the deletion vector at {start} fails its CRC-32")
    return data


def _z85_decode(text: str) -> bytes:
    try:
        groups = [[_Z85_VALUE[character] for character in text[i : i + 5]] for i in range(0, len(text), 5)]
        values = [(((a * 85 + b) * 85 + c) * 85 + d) * 85 + e for a, b, c, d, e in groups]
        return struct.pack(f">{len(values)}I", *values)
    except (KeyError, ValueError, struct.error) as error:
        raise CorruptLog(file=text[:40], problem="not Z85 text") from error


def _z85_encode(data: bytes) -> str:
    padded = data + b"\0" * (-len(data) % 4)
    characters: list[str] = []
    for (value,) in struct.iter_unpack(">I", padded):
        characters.extend(_Z85[value // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return "".join(characters)
