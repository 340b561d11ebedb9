"""The possible ends of readers' chunks of a capture batch: about this many rows apart, always at a record's start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tidemark.change_streams.model.change_streams import LoadSegment, Position

__all__ = ["SEQUENCE_DIGITS", "SegmentStart", "load_segments"]

SEQUENCE_DIGITS = 12


@dataclass(frozen=True)
class SegmentStart:
    """The start of a segment, and how many rows of its token and batch come before it."""

    token: str
    start: Position
    rows_before: int


def load_segments(starts: Iterable[SegmentStart], rows: Mapping[str, int]) -> tuple[LoadSegment, ...]:
    """Segments with their rows, in the order of tokens and positions; `rows` has those of each token."""
    found: list[LoadSegment] = []
    before: SegmentStart | None = None
    for one in sorted(set(starts), key=lambda start: (start.token, start.start)):
        if before is not None and before.token == one.token:
            found[-1] = replace(found[-1], rows=one.rows_before - before.rows_before)
        found.append(LoadSegment(one.token, one.start, rows[one.token] - one.rows_before))
        before = one
    return tuple(found)
