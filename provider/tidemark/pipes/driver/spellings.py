"""Values of a column that files spell in several ways: the first that is not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.pipes.driver.text_rows import VARIANT, column

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["field_of", "first_of", "member_of"]


def field_of(spellings: Sequence[str], header: Sequence[str]) -> Column:
    """The field of a line, by the names in the header."""
    return first_of([F.col(column(header.index(name) + 1)) for name in spellings])


def member_of(spellings: Sequence[str]) -> Column:
    """The member of a document, as a variant."""
    found = [F.try_variant_get(VARIANT, _path(name), "variant") for name in spellings]
    return F.coalesce(*found) if found else F.lit(None).cast("variant")


def first_of(found: Sequence[Column]) -> Column:
    """The first value that is not NULL; NULL as a text without any."""
    return F.coalesce(*found) if found else F.lit(None).cast("string")


def _path(name: str) -> str:
    quote = "'" if '"' in name else '"'
    return f"$[{quote}{name}{quote}]"
