"""The log of a source as a run of capture reads it, for any kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import TextOf

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["ONE_SERVER", "BatchFacts", "ChangeLog", "Found", "LogBatch", "ObjectFacts", "OpenLog", "Origin"]


@dataclass(frozen=True)
class Origin:
    """Which server's log a position is a place of, and the GTIDs of all its transactions before it. Both are "" of
    sources whose log belongs to one server.
    """

    server: str = ""
    gtids: str = ""


ONE_SERVER = Origin()


class ObjectFacts(NamedTuple):
    """The facts that all events of an object have in common while its schema is the same. `schema`, `table`: as named
    then.
    """

    object: str | None
    object_id: str | None
    schema: str | None
    table: str | None
    schema_key: str | None
    primary_keys: tuple[str, ...]


class Found(Protocol):
    """The facts of a batch, whole once all its rows were taken.

    `facts`: of the objects, by their number in a row. `events`: of each object, by its registered name. `changed`: ids
    of objects with a new schema; `schemas`: the newest of each. `renamed`: object → its name now. `unasked`: tables
    that came though nobody captures them. `total`: events; `newest`: commit time of the last transaction with one, in
    microseconds. `heartbeat`: whether one is still wanted. `exhausted`: nothing more commits before the end. `late`:
    some events may be older than events of the log, of the same row. `origin`: of `upto`.
    """

    facts: list[ObjectFacts]
    schemas: dict[str, TableSchema]
    events: dict[str, int]
    changed: set[str]
    renamed: dict[str, str]
    unasked: set[str]
    transactions: int
    total: int
    newest: int | None
    heartbeat: bool
    exhausted: bool
    late: bool

    @property
    def upto(self) -> LogPosition:
        """Every transaction that commits before it was read."""
        ...

    @property
    def origin(self) -> Origin:
        """Of `upto`."""
        ...


@dataclass(kw_only=True)
class BatchFacts:
    """The facts of `Found` that are empty at first."""

    facts: list[ObjectFacts] = field(default_factory=lambda: [ObjectFacts(None, None, None, None, None, ())])
    events: dict[str, int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    unasked: set[str] = field(default_factory=set)
    transactions: int = 0
    total: int = 0
    newest: int | None = None
    exhausted: bool = False
    late: bool = False

    @property
    def origin(self) -> Origin:
        """Of a log that belongs to one server."""
        return ONE_SERVER


@dataclass(frozen=True)
class LogBatch:
    """A batch under way. `rows`: chunks of rows in the form of the kind (`driver/log_forms.py`), in the order of
    (position, sequence). Connections that are opened for them are closed with the context, before Spark works.
    """

    found: Found
    rows: Callable[[], AbstractContextManager[Iterator[Sequence[tuple[Any, ...]]]]]


class ChangeLog(Protocol):
    """The log between two positions. Everything raises SourceUnreachable, SourceRefused."""

    protocol: str  # how it was read last, for the report

    def end(self, until: LogPosition | None = None) -> LogPosition:
        """Up to where this run reads: `until`, or else the current end of what can be read. It is the position of
        `resume` if `until` is of another log than that one is read on in.
        """
        ...

    def resume(self, position: LogPosition, origin: Origin = ONE_SERVER) -> None:
        """Require that all behind `position` can be read. Raises SourceSetBack, SlotLost, SlotForeign, SlotAhead.

        If another server took over from that of the origin, its log must have all that was captured. Raises
        SourceIsAnother, TransactionsMissing.
        """
        ...

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """Transactions that commit in [start, end), until there are `max_events` and the last is whole."""
        ...

    def release(self, position: LogPosition) -> None:
        """The source may throw away what is before `position`. A second call changes nothing."""
        ...

    def lag(self, position: LogPosition) -> int:
        """Bytes of log behind `position`."""
        ...


OpenLog: TypeAlias = "Callable[[CaptureEvents, SourceAddress, TextOf | None], AbstractContextManager[ChangeLog]]"
