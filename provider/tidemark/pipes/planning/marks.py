"""The mark in the report of a pipe, behind which the next report begins."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemark.errors import InvalidArgument

__all__ = ["Mark", "mark_of"]

_TEXT = re.compile(r"(\d{1,18})_(\d{1,18})_([0-9A-Za-z-]{1,100})")


@dataclass(frozen=True, order=True)
class Mark:
    """The file at `position` of a batch, from 1, in the order of names. `table`: the id of the pipe's table of files. A
    later pipe of the same name has another one.
    """

    batch: int = 0
    position: int = 0
    table: str = ""

    def to_text(self) -> str:
        """The form in which a report shows it."""
        return f"{self.batch}_{self.position}_{self.table}" if self.table else ""


def mark_of(text: str | None) -> Mark | None:
    """The mark that a request sends; None for the first request. Raises InvalidArgument."""
    if not text:
        return None
    found = _TEXT.fullmatch(text)
    if found is None or not text.isascii():
        problem = "it must be the nextBeginMark of an earlier report of this pipe"
        raise InvalidArgument(argument="beginMark", value=text[:100], problem=problem)
    return Mark(int(found[1]), int(found[2]), found[3])
