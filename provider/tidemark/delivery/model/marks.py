"""The mark of a write or a fence in the target's log, with its windows (PROTOCOL step 11, V8, V10)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidemark.delivery.model.quarantine import Split
from tidemark.model.codec import to_plain
from tidemark.model.foreign_json import foreign_object, foreign_value
from tidemark.model.statements import Statement
from tidemark.model.streams import StreamWindow

__all__ = [
    "Mark",
    "MarkKind",
    "MarkedWindow",
    "ends_of_views",
    "mark_of",
    "parse_changes",
    "parse_ends",
    "parse_mark",
    "parse_split",
]

ENVELOPE = "tidemark"
SPLIT = "tidemark_split"
CHANGES = "tidemark_changes"
ENDS = "tidemark_ends"


class MarkKind(StrEnum):
    """The kind of the marked commit. The two are never confused (V10)."""

    WRITE = "write"  # the statement, with its window
    FENCE = "fence"  # an empty commit that forbids the write


@dataclass(frozen=True)
class MarkedWindow:
    """The window of one stream, by value."""

    stream_uid: str
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """The `userMetadata` of a statement's commit: JSON `{"tidemark": {…}}`."""

    store_id: str
    windows: tuple[MarkedWindow, ...]
    statement: int
    digest: str
    app_id: str
    txn_version: int
    kind: MarkKind

    def to_text(
        self, split: Split | None = None, changes: int | None = None, ends: Mapping[str, Sequence[int]] | None = None
    ) -> str:
        """The text for `spark.databricks.delta.commitInfo.userMetadata`. It has `split`, `changes` (rows of the change
        set) and `ends` (of `ends_of_views`) beside the mark. The mark is the same for every attempt.
        """
        beside: dict[str, object] = {} if split is None else {SPLIT: to_plain(split)}
        beside |= {} if changes is None else {CHANGES: changes}
        beside |= {ENDS: {uid: list(versions) for uid, versions in ends.items()}} if ends else {}
        return json.dumps({ENVELOPE: to_plain(self), **beside}, sort_keys=True, separators=(",", ":"))


def mark_of(store_id: str, windows: tuple[StreamWindow, ...], statement: Statement, kind: MarkKind) -> Mark:
    """The only mark of this statement with these windows."""
    return Mark(
        store_id=store_id,
        windows=tuple(MarkedWindow(w.stream_uid, w.start, w.end) for w in windows),
        statement=statement.number,
        digest=statement.digest,
        app_id=statement.app_id,
        txn_version=statement.txn_version,
        kind=kind,
    )


def parse_mark(user_metadata: str | None) -> Mark | None:
    """The mark in a commit's `userMetadata`, or None if it has none. Other programs use the field, too."""
    return foreign_value(Mark, user_metadata, ENVELOPE)


def parse_split(user_metadata: str | None) -> Split | None:
    """The split by which the commit's window was sorted, or None if it has none."""
    return foreign_value(Split, user_metadata, SPLIT)


def parse_changes(user_metadata: str | None) -> int | None:
    """The number of rows that the commit's statement read of the change set, or None if it has none."""
    said = foreign_object(user_metadata)
    found = said.get(CHANGES) if ENVELOPE in said else None
    return found if type(found) is int and found >= 0 else None


def ends_of_views(windows: Sequence[StreamWindow]) -> dict[str, tuple[int, ...]]:
    """Stream uid → the window's end in each base table, for streams on views. The mark itself has their sum."""
    return {window.stream_uid: tuple(base.end for base in window.bases) for window in windows if window.view_bases}


def parse_ends(user_metadata: str | None) -> dict[str, tuple[int, ...]]:
    """`ends_of_views` of the commit; empty if it has none, as a commit of an earlier release."""
    said = foreign_object(user_metadata).get(ENDS)
    if not isinstance(said, dict):
        return {}
    return {
        uid: tuple(found) for uid, found in said.items() if isinstance(found, list) and all(map(_is_version, found))
    }


def _is_version(value: object) -> bool:
    return type(value) is int and value >= 0
