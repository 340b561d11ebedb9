"""The sinks of the records of a change stream's partitions, chunk by chunk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidemark.change_streams.model.change_streams import Chunk
from tidemark.model.codec import to_json
from tidemark.model.jobs import ErrorRecord
from tidemark.model.streams import TableRef

__all__ = [
    "Bundle",
    "ChunkAnswer",
    "ChunkFacts",
    "ChunkWrite",
    "KnownSink",
    "ReadRequest",
    "Sink",
    "SinkKind",
    "app_id_of",
    "bounds_of",
]


class SinkKind(StrEnum):
    """How a chunk is written."""

    APPEND = "append"  # each data change record becomes a row
    MERGE = "merge"  # the changes are applied to the rows of the target, key by key
    FUNCTION = "function"  # a Python function gets the records


@dataclass(frozen=True)
class Sink:
    """The user's request for the records. `table_id`: only records of this watched table, under any name that it had
    when they were captured; None: of all. `alone`: nobody has named it, and records of another are an error.

    `keys`: the key columns of a merge, () for those of the watched table. `function`: `module:function`.
    """

    kind: SinkKind
    target: TableRef | None = None
    table_id: str | None = None
    keys: tuple[str, ...] = ()
    function: str | None = None
    alone: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the request, without the location of the target."""
        asked = [self.kind, self.table_id, self.keys, self.function]
        return hashlib.sha256(to_json(asked).encode()).hexdigest()


@dataclass(frozen=True)
class KnownSink:
    """A table that a consumer group writes; `live`: the group has not ended."""

    group: str
    table_path: str
    table_id: str
    live: bool


@dataclass(frozen=True)
class Bundle:
    """The chunks that one mapped task reads; their tokens are neighbours. `range`: of their keys, for people."""

    range: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class ChunkWrite:
    """A chunk and the target's version before any attempt to write it: its mark is looked for from there on. If the
    target forgets numbers, it is looked for from `searched_from` on. A store that was restored from a backup knows of
    no attempt.
    """

    chunk: Chunk
    base_version: int = 0
    searched_from: int | None = None


@dataclass(frozen=True)
class ReadRequest:
    """The work of a READ_PARTITIONS job."""

    log_path: str
    sink: Sink
    writes: tuple[ChunkWrite, ...]


@dataclass(frozen=True)
class ChunkAnswer:
    """The outcome of a chunk. `rows`: those that the sink took, if it says so. `found`: an earlier attempt had written
    it. `error`: why it was not written.
    """

    token: str
    number: int
    rows: int | None = None
    found: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    error: ErrorRecord | None = None


@dataclass(frozen=True)
class ChunkFacts:
    """The facts of its chunk that a sink function gets. `app_id` and `txn_version` are the same for every attempt, and
    no other chunk has them. With them as `txnAppId` and `txnVersion` a Delta write of the function happens once.
    """

    stream: str
    group: str
    token: str
    number: int
    bounds: str
    app_id: str
    txn_version: int
    last: bool  # the partition ends with it


def app_id_of(store_id: str, chunk: Chunk) -> str:
    """The Delta application whose transactions are the chunks of one token for one group; a reset group has others."""
    return f"tidemark/{store_id}/{chunk.group_uid}/{chunk.token}"


def bounds_of(chunk: Chunk) -> str:
    """`[start, end)`, exactly."""
    return "[{}, {})".format(
        *(f"{position.at.isoformat()} {position.sequence}".strip() for position in (chunk.start, chunk.end))
    )
