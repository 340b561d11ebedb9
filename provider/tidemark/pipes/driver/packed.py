"""Packed text files, by the ends of their names."""

from __future__ import annotations

from typing import IO, Any

import fsspec

__all__ = ["PACKED", "unpacked"]

PACKED = (".gz", ".bz2", ".deflate", ".zst", ".lz4", ".snappy")  # ends of names that Spark unpacks
_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "zst": "zstd"}


def unpacked(opened: IO[bytes], file: str) -> Any:
    """The content of an open file of that name; as it is for an end of a name that Python cannot unpack."""
    codec = fsspec.compression.compr.get(_COMPRESSIONS.get(file.rsplit(".", 1)[-1].lower()))
    return opened if codec is None else codec(opened, mode="rb")
