"""Packed text files, by the ends of their names."""

from __future__ import annotations

import zlib
from typing import IO, Any

import fsspec

__all__ = ["PACKED", "is_readable", "unpacked"]

PACKED = (".gz", ".bz2", ".deflate", ".zst", ".lz4", ".snappy")  # ends of names that Spark unpacks
_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "zst": "zstd"}
_BLOCK = 1 << 16


def unpacked(opened: IO[bytes], file: str) -> Any:
    """The content of an open file of that name. It is as it was for an end of a name that Python cannot unpack."""
    end = file.rsplit(".", 1)[-1].lower()
    if end == "deflate":
        return _Deflated(opened)
    codec = fsspec.compression.compr.get(_COMPRESSIONS.get(end))
    return opened if codec is None else codec(opened, mode="rb")


def is_readable(file: str) -> bool:
    """Whether Python has the text of a file of that name: it is not packed, or Python can unpack it."""
    end = file.rsplit(".", 1)[-1].lower()
    return not file.endswith(PACKED) or end == "deflate" or _COMPRESSIONS.get(end, "") in fsspec.compression.compr


class _Deflated:
    """The content of a stream of zlib, as Hadoop's codec of that name writes it."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed, self._codec = packed, zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """At most `size` bytes; fewer only at the end. Raises EOFError if the file was cut, and zlib.error."""
        found = bytearray()
        while len(found) < size and not self._codec.eof:
            block = self._codec.unconsumed_tail or self._packed.read(_BLOCK)
            if not block:
                raise EOFError("Compressed file ended before its end marker")
            found += self._codec.decompress(block, size - len(found))
        return bytes(found)
