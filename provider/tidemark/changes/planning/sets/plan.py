"""A plan: the files to read for a window, and the way from their rows to changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from tidemark.model.streams import StreamMode
from tidemark.model.table_log import DeletionVector, Metadata, UnstoredVector

__all__ = ["Candidate", "ChangePlan", "Netting", "Origin", "PlannedFile", "choose_netting", "explain_pages"]

ROWS_FOR_ONE_AGGREGATE = 300_000  # below, one aggregate takes all images; above, carried rows are removed first
ROWS_WORTH_A_BRANCH = 100_000  # from this number on, inserted rows are not paired
MOST_KEYS_TO_BROADCAST = 4_000_000  # of bigint: some 100 MB in the driver at the worst


class Candidate(StrEnum):
    """The ways to find the files of a plan."""

    NOTHING = "nothing"  # no row changed, nothing is read
    STATE = "state"  # all actions: the difference of the live files
    DATA_CHANGE = "data_change"  # only actions with dataChange: rewrites are not read
    FEED = "feed"  # the change files of commits that have them, the data changes of others
    BIRTHS = "births"  # the first add of each new path (append-only)
    EACH = "each"  # every commit for itself


class Netting(StrEnum):
    """The ways from the rows of a plan to changes."""

    NOTHING = "nothing"
    ONE_SIDE = "one_side"  # every row is a change
    AGGREGATE = "aggregate"  # few rows: images through one aggregate by row id
    COMMIT_VERSION = (
        "commit_version"  # many rows: a new row no newer than the window was carried over, with its old one
    )
    JOIN = "join"  # many rows: keys are cancelled first, images are joined to the rest


class Origin(IntEnum):
    """The rows of a planned file that count, and their side."""

    REMOVED = -1
    CHANGES = 0  # a change file: each row has its side
    ADDED = 1
    BORN = 2  # on the added side, only rows that this file inserted


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One `add` of a log-only table. Rows of `path` outside `deletion_vector` count by `origin`.

    `path`: the absolute, percent-encoded URI. The deletion vector is inline or absolute, or is so large that it is
    stored with the log. `partition_columns`: physical names of the file's partition columns that the plan's schema has.
    `version`: the commit of the rows in plans of every change, else 0.
    """

    origin: Origin
    path: str
    size: int
    rows: int
    partition_columns: tuple[str, ...]
    partition_values: Mapping[str, str | None]
    stats: str | None
    deletion_vector: DeletionVector | UnstoredVector | None
    base_row_id: int
    default_row_commit_version: int
    modification_time: int = 0
    version: int = 0

    @property
    def key(self) -> tuple[str, str | None]:
        """Identity of the logical file, which a log has once."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True)
class ChangePlan:
    """The plan of the changes in (start, end] of one table: all files, and the way to a change set.

    `metadata`: of version `end`, whose schema the changes show (R100). `times`: the commits of `files`, in plans of
    every change. `weighed`: the costs of the candidates, in bytes to be read. `feed_unused`: the reason why existing
    change files are no candidate. `keys`: the columns that identify rows instead of their ids. `reader`: the stream's
    name, for errors. `in_driver`: the driver reads the rows itself, if they are as few and as plain as the log says.
    """

    table_uri: str
    table_id: str
    start: int
    end: int
    mode: StreamMode
    candidate: Candidate
    netting: Netting
    metadata: Metadata = field(repr=False)
    files: tuple[PlannedFile, ...] = field(repr=False)
    times: Mapping[int, datetime] | None = field(default=None, repr=False)
    weighed: Mapping[Candidate, int] = field(default_factory=dict)
    feed_unused: str | None = None
    keys: tuple[str, ...] = ()
    reader: str = "CHANGES"
    in_driver: bool = False

    @property
    def empty(self) -> bool:
        """Whether the plan reads nothing."""
        return not self.files

    @property
    def rows_born(self) -> int:
        """The number of rows that need no partner. Only many are worth a branch of their own."""
        born = sum(file.rows for file in self.files if file.origin is Origin.BORN)
        alone = self.candidate is Candidate.STATE and born >= ROWS_WORTH_A_BRANCH
        return born if alone else 0

    def rows(self, *origins: Origin) -> int:
        """Rows to be read of these origins, or of all."""
        return sum(file.rows for file in self.files if not origins or file.origin in origins)

    def bytes(self, *origins: Origin) -> int:
        """Bytes of the files of these origins; a file of both sides counts on both."""
        return sum(file.size for file in self.files if file.origin in origins)

    def in_words(self) -> str:
        """One line for a log: the versions, the files, and the alternatives."""
        if self.empty:
            return f"versions ({self.start}, {self.end}]: no row changed, nothing is read"
        files, size = len(self.files), sum(file.size for file in self.files)
        others = ", ".join(f"{name.value} {cost:,}" for name, cost in self.weighed.items())
        weighed = f"; weighed in bytes: {others}" if len(self.weighed) > 1 else ""
        unused = f"; change files unused: {self.feed_unused}" if self.feed_unused else ""
        what = f"{self.rows():,} rows in {files:,} files of {size:,} bytes"
        how = f"{self.candidate.value}, {what}, {self.netting.value}{', in the driver' if self.in_driver else ''}"
        return f"versions ({self.start}, {self.end}]: {how}{weighed}{unused}"

    def explain(self) -> dict[str, Any]:
        """The plan in numbers: candidate, alternatives, netting, and files, rows, bytes of each side. `changes` are
        Delta's own change files, which have both sides.
        """
        sides = {
            "removed": (Origin.REMOVED,),
            "added": (Origin.ADDED, Origin.BORN),
            "changes": (Origin.CHANGES,),
        }
        return {
            "from_version": self.start,
            "to_version": self.end,
            "mode": self.mode.value,
            **({"keys": list(self.keys)} if self.keys else {}),
            "candidate": self.candidate.value,
            **({"weighed": {name.value: cost for name, cost in self.weighed.items()}} if len(self.weighed) > 1 else {}),
            **({"change_files_unused": self.feed_unused} if self.feed_unused else {}),
            "netting": self.netting.value,
            **{
                name: {
                    "files": sum(1 for file in self.files if file.origin in origins),
                    "rows": self.rows(*origins),
                    "bytes": self.bytes(*origins),
                }
                for name, origins in sides.items()
                if name != "changes" or self.candidate in (Candidate.FEED, Candidate.EACH)
            },
        }


def explain_pages(pages: Sequence[ChangePlan]) -> dict[str, Any]:
    """The consecutive plans of one window in the form of `ChangePlan.explain`, with summed sides. `pages`: their
    number, if it is not one.
    """
    first, *more = (page.explain() for page in pages)
    for other in more:
        first["to_version"] = other["to_version"]
        for side in ("removed", "added", "changes"):
            first[side] = {name: count + other[side][name] for name, count in first[side].items()}
    if more:
        first["netting"] = ", ".join(dict.fromkeys(page.netting.value for page in pages))
        first["pages"] = len(pages)
    return first


def choose_netting(candidate: Candidate, files: tuple[PlannedFile, ...], *, brings_back: bool) -> Netting:
    """The netting for a candidate and its files.

    `brings_back`: rows from before the window may have been restored unchanged. Then a row's commit version does not
    show whether it existed at the window's start.
    """
    if not files:
        return Netting.NOTHING
    origins = {file.origin for file in files}
    if candidate is Candidate.BIRTHS or origins == {Origin.REMOVED} or origins <= {Origin.ADDED, Origin.BORN}:
        return Netting.ONE_SIDE
    rows = sum(file.rows for file in files if file.origin is not Origin.BORN or candidate is not Candidate.STATE)
    if rows <= ROWS_FOR_ONE_AGGREGATE:
        return Netting.AGGREGATE
    added = sum(file.rows for file in files if file.origin is Origin.ADDED)
    each_row_once = candidate in (Candidate.STATE, Candidate.EACH) and Origin.CHANGES not in origins
    if each_row_once and not brings_back and added <= MOST_KEYS_TO_BROADCAST:
        return Netting.COMMIT_VERSION
    return Netting.JOIN
