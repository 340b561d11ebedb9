"""The mark of a batch in the commit of its rows, so that a later run finds which attempt wrote them."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.codec import to_json
from tidemark.model.foreign_json import foreign_value

__all__ = ["LoadMark", "load_mark_of"]

_ENVELOPE = "tidemark.load"


@dataclass(frozen=True)
class LoadMark:
    """`files`: id of the table of files in which the batch was planned."""

    files: str
    batch: int
    attempt: str

    def to_text(self) -> str:
        """The commit's userMetadata."""
        return to_json({_ENVELOPE: self})


def load_mark_of(user_metadata: str | None) -> LoadMark | None:
    """The mark in a commit's userMetadata; None if it has none. Other programs use the field, too."""
    return foreign_value(LoadMark, user_metadata, _ENVELOPE)
