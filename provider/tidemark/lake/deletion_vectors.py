"""Deletion vectors: the deleted rows of a file (Delta protocol, "Deletion Vectors" and "Deletion Vector Format")."""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyroaring import BitMap64

from tidemark.errors import CorruptLog
from tidemark.lake.paths import file_uri
from tidemark.model.table_log import DeletionVector, UnstoredVector

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage

__all__ = ["LARGEST_INLINE", "VectorFile", "absolute", "inline", "load", "made", "movable"]

LARGEST_INLINE = 32 * 1024  # bytes of data; Delta's readers accept up to 52,428: 65,535 bytes of text
_LARGEST = 512 << 20  # bytes: every second one of four billion rows
_LAST_OFFSET = (1 << 31) - 1
_MAGIC = 1681511377
_FORMAT = b"\x01"  # the first byte of a file of deletion vectors
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"  # of Python's base64
_TO_Z85 = bytes.maketrans(_B85, _Z85)
_FROM_Z85 = bytes(_B85[_Z85.index(letter)] if letter in _Z85 else 0 for letter in range(256))  # 0 is in no alphabet
_UUID_LENGTH = 20
_UUID_BYTES = 16


def load(vector: DeletionVector, table_uri: str, storage: Storage) -> BitMap64:
    """The row positions that the vector marks as deleted.

    Raises CorruptLog for a wrong magic number, checksum, size or cardinality, NotAFile, and FileNotFoundError if the
    file is missing.
    """
    where = vector.path_or_inline if vector.storage_type != "i" else "an inline deletion vector"
    if vector.size_in_bytes > _LARGEST or (vector.offset or 0) > _LAST_OFFSET:
        problem = f"a deletion vector of {vector.size_in_bytes:,} bytes at {vector.offset}: no writer makes one"
        raise CorruptLog(file=where, problem=problem)
    data = _inline_data(vector) if vector.storage_type == "i" else _stored_data(vector, table_uri, storage)
    if len(data) < 4 or struct.unpack("<I", data[:4])[0] != _MAGIC:
        raise CorruptLog(file=where, problem="a deletion vector does not begin with its magic number")
    try:
        rows = BitMap64.deserialize(data[4:])
    except ValueError as error:
        raise CorruptLog(file=where, problem=f"not a roaring bitmap: {error}") from error
    if len(rows) != vector.cardinality:
        problem = f"a deletion vector has {len(rows)} rows, but {vector.cardinality} in the log"
        raise CorruptLog(file=where, problem=problem)
    return rows


def made(rows: BitMap64) -> DeletionVector | UnstoredVector:
    """The vector that marks `rows`, inline if it is small enough for a log."""
    return _placed(_data(rows), len(rows))


def inline(rows: BitMap64) -> DeletionVector:
    """The inline vector that marks `rows`, of any size."""
    return _inline(_data(rows), len(rows))


def movable(vector: DeletionVector, table_uri: str) -> DeletionVector | UnstoredVector:
    """The same vector for the log of another table. Raises CorruptLog if an inline one is no Z85 text."""
    if vector.storage_type == "i" and vector.size_in_bytes > LARGEST_INLINE:
        return _placed(_inline_data(vector), vector.cardinality)
    return absolute(vector, table_uri)


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


class VectorFile:
    """A file of deletion vectors for `uri` (percent-encoded), built in memory."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._parts = [_FORMAT]
        self.size = len(_FORMAT)

    @property
    def empty(self) -> bool:
        """Whether the file has no vector."""
        return self.size == len(_FORMAT)

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return b"".join(self._parts)

    def put(self, vector: UnstoredVector) -> DeletionVector:
        """The vector with its place in the file, to which it was appended."""
        offset, size = self.size, len(vector.data)
        self._parts += [struct.pack(">I", size), vector.data, struct.pack(">I", zlib.crc32(vector.data))]
        self.size += size + 8
        return DeletionVector("p", self.uri, size, vector.cardinality, offset)


def _data(rows: BitMap64) -> bytes:
    compact = BitMap64(rows)
    compact.run_optimize()
    return struct.pack("<I", _MAGIC) + compact.serialize()


def _inline(data: bytes, cardinality: int) -> DeletionVector:
    return DeletionVector("i", _z85_encode(data), len(data), cardinality)


def _placed(data: bytes, cardinality: int) -> DeletionVector | UnstoredVector:
    return _inline(data, cardinality) if len(data) <= LARGEST_INLINE else UnstoredVector(data, cardinality)


def _vector_uri(vector: DeletionVector, table_uri: str) -> str:
    if vector.storage_type == "p":
        return file_uri(table_uri, vector.path_or_inline)
    prefix, encoded = vector.path_or_inline[:-_UUID_LENGTH], vector.path_or_inline[-_UUID_LENGTH:]
    identity = _z85_decode(encoded)
    if len(identity) != _UUID_BYTES or "\0" in prefix:
        raise CorruptLog(file=vector.path_or_inline[:40], problem="it is not a name of a deletion vector")
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
        raise CorruptLog(file=name, problem=f"the deletion vector at {start} has another size than the log has")
    data, checksum = stored[4:-4], struct.unpack(">I", stored[-4:])[0]
    if zlib.crc32(data) != checksum:
        raise CorruptLog(file=name, problem=f"the deletion vector at {start} fails its CRC-32")
    return data


def _z85_decode(text: str) -> bytes:
    try:
        if len(text) % 5:
            raise ValueError(f"{len(text)} letters")
        return base64.b85decode(text.encode("ascii").translate(_FROM_Z85))
    except ValueError as error:
        raise CorruptLog(file=text[:40], problem="not Z85 text") from error


def _z85_encode(data: bytes) -> str:
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).translate(_TO_Z85).decode("ascii")
