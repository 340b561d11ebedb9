"""Partition tokens: text that identifies a range of a change stream; a wrong one is recognized without a scan.

A token is base64url, without padding. It encodes a version byte, lo, hi - 1, the opening batch's number, the stream's
uid, and a CRC of all that. It is the same however often it is made. Readers treat it as opaque.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tidemark.change_streams.model.change_streams import BUCKETS, Partition
from tidemark.errors import InvalidArgument, PartitionTokenInvalid

__all__ = ["TokenParts", "first_partitions", "make_token", "parse_token"]

_VERSION = 1
_HEAD = struct.Struct(">BHHQ")  # version, lo, hi - 1, batch
_CRC = struct.Struct(">I")
_LONGEST = 400  # characters: of a longer text nothing is decoded


@dataclass(frozen=True)
class TokenParts:
    """The content of a token: the buckets [lo, hi) of a stream, opened by a batch."""

    stream_uid: str
    lo: int
    hi: int
    batch: int


def make_token(stream_uid: str, lo: int, hi: int, batch: int) -> str:
    """The token of the buckets [lo, hi) that `batch` opens; of the first partitions that is 0.

    Raises InvalidArgument for buckets that are no range.
    """
    if not 0 <= lo < hi <= BUCKETS:
        raise InvalidArgument(argument="lo, hi", value=(lo, hi), problem=f"they must be a range within [0, {BUCKETS})")
    body = _HEAD.pack(_VERSION, lo, hi - 1, batch) + stream_uid.encode()
    return base64.urlsafe_b64encode(body + _CRC.pack(zlib.crc32(body))).decode().rstrip("=")


def parse_token(text: str, *, stream_uid: str | None = None) -> TokenParts:
    """The parts that `make_token` was given. Raises PartitionTokenInvalid for a text that it did not make, and, with
    `stream_uid`, for a token of another stream.
    """
    parts = _parsed(text)
    if parts is None or make_token(parts.stream_uid, parts.lo, parts.hi, parts.batch) != text:
        raise PartitionTokenInvalid(
            argument="partition_token", value=text, problem="it is damaged, or was never a partition token"
        )
    if stream_uid is not None and parts.stream_uid != stream_uid:
        raise PartitionTokenInvalid(argument="partition_token", value=text, problem="it is of another change stream")
    return parts


def first_partitions(stream_uid: str, created_at: datetime, count: int) -> tuple[Partition, ...]:
    """`count` partitions of about one size that tile the key space. Raises InvalidArgument unless 1 <= count <=
    BUCKETS.
    """
    if not 1 <= count <= BUCKETS:
        raise InvalidArgument(argument="initial_partitions", value=count, problem=f"it must be from 1 to {BUCKETS}")
    return tuple(
        Partition(make_token(stream_uid, lo, hi, 0), lo, hi, (), created_at) for lo, hi in _ranges(range(count), count)
    )


def _ranges(numbers: Iterable[int], count: int) -> Iterable[tuple[int, int]]:
    return ((BUCKETS * number // count, BUCKETS * (number + 1) // count) for number in numbers)


def _parsed(text: str) -> TokenParts | None:
    """None: it is no token."""
    if not isinstance(text, str) or len(text) > _LONGEST or not text.isascii():
        return None
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if len(data) < _HEAD.size + _CRC.size:
            return None
        body, (crc,) = data[: -_CRC.size], _CRC.unpack(data[-_CRC.size :])
        version, lo, last, batch = _HEAD.unpack_from(body)
        uid = body[_HEAD.size :].decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (
        TokenParts(uid, lo, last + 1, batch) if version == _VERSION and crc == zlib.crc32(body) and lo <= last else None
    )
