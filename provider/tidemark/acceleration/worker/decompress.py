"""Compressed files as Spark writes them, part by part.

PyArrow has the algorithms. Spark writes LZ4 and Snappy as blocks with headers of their own, which are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO

__all__ = ["CODECS", "TruncatedFile", "UnreadableFile", "parts_of"]

CODECS = ("zstd", "lz4", "snappy")
_PART = 1 << 16
_STEP = 1 << 13  # of a stream that may be cut off: the last step is lost
_LZ4_MAGIC, _LZ4_RAW, _LZ4_HEADER = b"LZ4Block", 0x10, 21
_SNAPPY_MAGIC, _SNAPPY_HEADER = b"\x82SNAPPY\0", 16
_LARGEST_BLOCK = 1 << 28


class UnreadableFile(Exception):
    """The content is not what the file's name says; the message has the problem."""


class TruncatedFile(UnreadableFile):
    """The file ends within a block, as that of a killed writer does."""


def parts_of(file: IO[bytes], codec: str) -> Iterator[bytes]:
    """The content of a file, in parts of bounded size; `codec` is one of CODECS, or empty for plain text.

    Raises UnreadableFile, and TruncatedFile after the last whole part.
    """
    readers: Mapping[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
        "": _plain,
        "zstd": _zstd,
        "lz4": _lz4,
        "snappy": _snappy,
    }
    return readers[codec](file)


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.read(_PART):
        yield part


def _zstd(file: IO[bytes]) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as stream:
            while part := stream.read(_STEP):
                yield part
    except OSError as error:
        if error.errno is not None:
            raise  # of the storage
        kind = TruncatedFile if "Truncated" in str(error) else UnreadableFile
        raise kind(str(error)) from error


def _lz4(file: IO[bytes]) -> Iterator[bytes]:
    while header := file.read(_LZ4_HEADER):
        _require(header, _LZ4_HEADER)
        if not header.startswith(_LZ4_MAGIC):
            raise UnreadableFile("it has no block of LZ4")
        packed, plain = (int.from_bytes(header[at : at + 4], "little") for at in (9, 13))
        if plain:  # a block without content ends a stream, and another stream may follow
            block = _block(file, packed)
            yield block if header[8] & 0xF0 == _LZ4_RAW else _unpacked("lz4_raw", block, plain)


def _snappy(file: IO[bytes]) -> Iterator[bytes]:
    while head := file.read(4):
        _require(head, 4)
        if head == _SNAPPY_MAGIC[:4]:
            _require(file.read(_SNAPPY_HEADER - 4), _SNAPPY_HEADER - 4)
            continue
        block = _block(file, int.from_bytes(head, "big"))
        yield _unpacked("snappy", block, _varint(block))


def _block(file: IO[bytes], size: int) -> bytes:
    if size > _LARGEST_BLOCK:
        raise UnreadableFile(f"a block of {size:,} bytes is too large")
    block = file.read(size)
    _require(block, size)
    return block


def _require(read: bytes, size: int) -> None:
    if len(read) < size:
        raise TruncatedFile("it ends within a block")


def _unpacked(codec: str, block: bytes, size: int) -> bytes:
    import pyarrow as pa

    if size > _LARGEST_BLOCK:
        raise UnreadableFile(f"a block of {size:,} bytes is too large")
    try:
        return bytes(pa.Codec(codec).decompress(block, size, asbytes=True))
    except OSError as error:
        raise UnreadableFile(str(error)) from error


def _varint(block: bytes) -> int:
    """The size of the content, with which a block of Snappy begins."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise UnreadableFile("it has no block of Snappy")
