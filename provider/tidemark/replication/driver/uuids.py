"""UUIDs that are the same for the same thing, as Spark makes them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["uuid5", "uuid_of_place"]

_DIGITS = "0123456789abcdef"
_VARIANT = "89ab" * 4  # the two highest bits of that digit are 10


def uuid5(namespace: uuid.UUID, name: Column) -> Column:
    """The result of Python's `uuid.uuid5`, as text."""
    digest = F.sha1(F.concat(F.lit(bytearray(namespace.bytes)), F.encode(name, "UTF-8")))
    return F.concat(
        F.substring(digest, 1, 8),
        F.lit("-"),
        F.substring(digest, 9, 4),
        F.lit("-5"),
        F.substring(digest, 14, 3),
        F.lit("-"),
        F.translate(F.substring(digest, 17, 1), _DIGITS, _VARIANT),
        F.substring(digest, 18, 3),
        F.lit("-"),
        F.substring(digest, 21, 12),
    )


def uuid_of_place(namespace: uuid.UUID, space: Column, place: Column) -> Column:
    """Of version 8, as text: 74 bits of the SHA-1 of `space`, then `place` as it is, 12 hexadecimal digits.

    With a constant `space` no row costs a digest. Rows that follow each other differ in a few digits only, which take
    little room in files.
    """
    of_space = uuid5(namespace, space)
    return F.concat(F.substring(of_space, 1, 14), F.lit("8"), F.substring(of_space, 16, 9), place)
