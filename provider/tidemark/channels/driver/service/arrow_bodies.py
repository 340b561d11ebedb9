"""Streams of Arrow that others sent, measured before they fill the memory.

A small stream may have many bytes. Its buffers may be compressed, and rows without values cost nothing. A dictionary or
a view repeats a value without its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import BodyTooLarge, BodyUnreadable

__all__ = ["table_of_stream"]

_LEAST_BYTES_OF_ROW = 8
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # types of messages in Arrow's format


def table_of_stream(data: bytes, limit: int) -> pa.Table:
    """The table in a stream. Raises BodyTooLarge if its values have more bytes than `limit`, where a row counts as at
    least 8 bytes. Raises BodyUnreadable.
    """
    try:
        _require_at_most(limit, sum(map(_declared, _messages(data))))
        with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate()
        columns = (chunk for column in table.columns for chunk in column.chunks)
        _require_at_most(limit, sum(map(_expanded, columns)))
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise BodyUnreadable(problem=f"it is not a stream of Arrow: {error}") from None
    return table


def _require_at_most(limit: int, size: int) -> None:
    if size > limit:
        raise BodyTooLarge(limit=limit)


def _messages(data: bytes) -> Iterator[pa.Message]:
    yield from pa.ipc.MessageReader.open_stream(pa.BufferReader(data))


def _declared(message: pa.Message) -> int:
    """The bytes of a batch's buffers after decompression, as the message says. Arrow refuses buffers of other sizes."""
    flat = _Flat(bytes(message.metadata))
    header = flat.table(flat.root, 2)
    kind = flat.byte(flat.root, 1)
    if header is None or kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0
    batch = flat.table(header, 1) if kind == _DICTIONARY_BATCH else header
    if batch is None:
        return 0
    rows, body = flat.long(batch, 0), memoryview(message.body or b"")
    is_compressed = flat.table(batch, 3) is not None
    size = 0
    for offset, length in flat.pairs(batch, 2):
        declared = struct.unpack_from("<q", body, offset)[0] if is_compressed and length else -1
        size += declared if declared >= 0 else length
    return max(size, rows * _LEAST_BYTES_OF_ROW)


class _Flat:
    """The fields of tables in a flatbuffer, by their numbers. Raises struct.error beyond its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.root = self._at("<I", 0)

    def byte(self, table: int, number: int) -> int:
        """A number of one byte; 0 if the table lacks it."""
        place = self._place(table, number)
        return 0 if place is None else self._at("<B", place)

    def long(self, table: int, number: int) -> int:
        """A number of eight bytes; 0 if the table lacks it."""
        place = self._place(table, number)
        return 0 if place is None else self._at("<q", place)

    def table(self, table: int, number: int) -> int | None:
        """The place of a table or a vector."""
        place = self._place(table, number)
        return None if place is None else place + self._at("<I", place)

    def pairs(self, table: int, number: int) -> Iterator[tuple[int, int]]:
        """A vector of pairs of eight bytes each."""
        start = self.table(table, number)
        for index in range(0 if start is None else self._at("<I", start)):
            yield struct.unpack_from("<qq", self._data, (start or 0) + 4 + 16 * index)

    def _place(self, table: int, number: int) -> int | None:
        names = table - self._at("<i", table)
        if 4 + 2 * number >= self._at("<H", names):
            return None
        offset = self._at("<H", names + 4 + 2 * number)
        return table + offset if offset else None

    def _at(self, form: str, place: int) -> int:
        if place < 0:
            raise struct.error("a place before the beginning")
        found: int = struct.unpack_from(form, self._data, place)[0]
        return found


def _expanded(array: pa.Array) -> int:
    """The bytes of values that dictionaries and views repeat. Raises ValueError for types whose bytes are unknown."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _expanded(array.storage)
    if pa.types.is_dictionary(kind):
        return _of_dictionary(array)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = memoryview(array.buffers()[1]).cast("i")  # of 16 bytes each, which begin with the length
        return sum(length for length in views[4 * array.offset : 4 * (array.offset + len(array)) : 4] if length > 0)
    if pa.types.is_struct(kind):
        return sum(map(_expanded, array.flatten()))
    if pa.types.is_map(kind):
        return _expanded(array.keys) + _expanded(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _expanded(array.flatten())
    if pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind):
        raise ValueError(f"a column of type {kind} is not read")
    return 0


def _of_dictionary(array: pa.DictionaryArray) -> int:
    values = array.dictionary
    if pa.types.is_nested(values.type) or pa.types.is_dictionary(values.type):
        raise ValueError(f"a column of type {array.type} is not read")
    try:
        lengths = pc.binary_length(values)
    except pa.ArrowNotImplementedError:  # values of a fixed width
        return len(array) * _LEAST_BYTES_OF_ROW
    return int(pc.sum(lengths.cast(pa.int64()).take(array.indices)).as_py() or 0)
