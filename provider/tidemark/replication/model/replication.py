"""Replication of databases: what is replicated, how far its log was captured, and the state of each object.

The same words serve every kind of source. A transaction of the source has a commit position. Positions compare as text,
so that a 64-bit LSN, a file with an offset and an 80-bit LSN all fit. Ranges of positions are half-open. Times are
aware UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import HeldColumn, Shown

__all__ = [
    "START",
    "Actor",
    "BackfillProgress",
    "Column",
    "FoundObject",
    "HeldTable",
    "Hinders",
    "InvalidValues",
    "LogPosition",
    "NameCase",
    "ObjectName",
    "ObjectState",
    "ReplicatedObject",
    "Replication",
    "ReplicationOptions",
    "ReplicationState",
    "ReplicationTransition",
    "Selection",
    "Shown",
    "SourceProblem",
    "TableSchema",
    "TypeKind",
    "UnifiedType",
    "WriteMode",
]


class ReplicationState(StrEnum):
    """The state of a replication (Datastream's stream states)."""

    NOT_STARTED = "not_started"
    STARTING = "starting"  # it is validated, and what it needs in the source is made
    RUNNING = "running"
    DRAINING = "draining"  # nothing new is captured; what was captured is still applied
    PAUSED = "paused"
    FAILED = "failed"  # the last run failed; the next one tries again by itself
    FAILED_PERMANENTLY = "failed_permanently"  # the log cannot be read on; recovered only from an explicit position


class ObjectState(StrEnum):
    """The state of an object's backfill (Datastream's backfill jobs)."""

    NOT_STARTED = "not_started"
    PENDING = "pending"  # requested; the next run begins it
    ACTIVE = "active"
    STOPPED = "stopped"  # the next one starts from the beginning
    FAILED = "failed"
    COMPLETED = "completed"
    UNSUPPORTED = "unsupported"


class WriteMode(StrEnum):
    """The kind of a target."""

    MERGE = "merge"  # a mirror of the object, key by key
    APPEND_ONLY = "append_only"  # a row for every event


class InvalidValues(StrEnum):
    """The treatment of a value that Delta cannot hold (an infinite date, NaN in a decimal)."""

    FAIL = "fail"  # its object stops before it, with a named error
    NULL = "null"  # it becomes NULL; the event log has it as it was


class TypeKind(StrEnum):
    """Unified types, and the text that a value of each has in an event's payload. NULL is null in every type."""

    BOOLEAN = "boolean"  # true, false
    SMALLINT = "smallint"  # decimal digits
    INTEGER = "integer"
    LONG = "long"
    FLOAT = "float"  # shortest digits that give the value back; NaN, Infinity, -Infinity
    DOUBLE = "double"
    DECIMAL = "decimal"  # plain digits, of `precision` and `scale`; NaN, Infinity do not fit
    STRING = "string"  # as the source writes it; also what has no type of its own in Delta (time, interval, uuid …)
    BYTES = "bytes"  # lower-case hex, without a prefix
    DATE = "date"  # 2024-02-29; infinity, and years before 1 or after 9999 do not fit
    DATETIME = "datetime"  # 2024-02-29 12:00:00.123456, of no zone
    TIMESTAMP = "timestamp"  # 2024-02-29 12:00:00.123456+00, always UTC
    JSON = "json"  # JSON text
    ARRAY = "array"  # JSON text: an array of the texts of its items, as strings or null


@dataclass(frozen=True)
class UnifiedType:
    """A type of any source. `precision` and `scale` of a DECIMAL; `item` of an ARRAY."""

    kind: TypeKind
    precision: int | None = None
    scale: int | None = None
    item: UnifiedType | None = None


@dataclass(frozen=True)
class Column:
    """A column of an object. `native`: its type in the words of the source. `key`: part of the primary key.

    `filled`: the text of the value in rows older than the column. The source says it if the column was added with a
    constant default. `unknown_fill`: such rows may have any value, which only a backfill shows. `number`: of the column
    in its table (an attnum), None if the source has none. A rename keeps the number, and a recreated column gets
    another. `shown`: PLAIN, HASHED or MASKED; of the latter two `type` is STRING.
    """

    name: str
    type: UnifiedType
    native: str
    key: bool = False
    nullable: bool = True
    filled: str | None = None
    unknown_fill: bool = False
    number: int | None = None
    shown: Shown = Shown.PLAIN


@dataclass(frozen=True)
class TableSchema:
    """The columns that an object had at some time, in the source's order. `replaced`: another table took its name at
    that moment. Its rows came without an event.
    """

    columns: tuple[Column, ...]
    replaced: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the primary key's columns; () where there is none."""
        return tuple(column.name for column in self.columns if column.key)

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, order=True)
class LogPosition:
    """A place in a source's log: before the event of that commit and sequence. `commit`: of fixed width for a source,
    so that texts compare as positions do; "" is before all. `sequence` counts the events of a transaction from 1.
    """

    commit: str
    sequence: int = 0


START = LogPosition("")


@dataclass(frozen=True, order=True)
class ObjectName:
    """A table of the source. `text` is what people read, `folded` the unified name (`schema_table`)."""

    schema: str
    table: str

    @property
    def text(self) -> str:
        """`schema.table`."""
        return f"{self.schema}.{self.table}"

    @property
    def folded(self) -> str:
        """`schema_table`; two objects may have the same, so their ids tell them apart."""
        return f"{self.schema}_{self.table}"


class NameCase(StrEnum):
    """Which names of a source are the same in any case."""

    NONE = "none"
    COLUMNS = "columns"
    ALL = "all"  # those of schemas and tables, too


@dataclass(frozen=True)
class Selection:
    """Which objects and columns: patterns `schema`, `schema.table` or `schema.table.column`, `*` for any text in a
    part. Included is what an `include` names (all where there is none) and no `exclude` does.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplicationOptions:
    """The user's choices. `target`: a schema of the lake, or a path. `target_table`: the name of an object's table
    there, with `{schema}` and `{table}` of the object.

    `max_events`: events in one commit of the event log, beyond which only the end of a transaction is waited for.
    `gives_way_after`: seconds for which another session of the source waits for a backfill before that is ended.
    `without_key`: the kind of target for a table without a key, if `mode` is MERGE. MERGE is a mirror, in which each
    row is as often as in the source. `append_only_tables`, `merge_tables`: patterns of tables that have this mode, for
    any `mode` and `without_key`; the first wins. `fetch_rows`: rows that a backfill fetches at a time at most; wide
    rows come in smaller numbers anyway. `publication`, `slot`: names of existing ones in the source, which Tidemark
    neither creates, alters nor drops; None: the replication has its own.
    """

    target: str
    mode: WriteMode = WriteMode.MERGE
    invalid_values: InvalidValues = InvalidValues.FAIL
    backfill: bool = True  # objects are backfilled by themselves (Datastream's backfillAll); False: only on request
    backfill_exclude: tuple[str, ...] = ()  # patterns of objects that are not
    numeric_as: str | None = None  # Delta type of a numeric without precision: None is STRING, or "decimal(38,9)"
    max_events: int = 500_000
    gives_way_after: float = 5.0
    without_key: WriteMode = WriteMode.APPEND_ONLY
    mask_columns: tuple[str, ...] = ()  # patterns of columns whose values never reach the lake
    hash_columns: tuple[str, ...] = ()  # patterns of columns of which the lake has hashes
    hash_mark: str | None = None  # what the connection's hash secret was when it was made, without telling it
    target_table: str = "{schema}_{table}"
    append_only_tables: tuple[str, ...] = ()
    merge_tables: tuple[str, ...] = ()
    fetch_rows: int | None = None
    publication: str | None = None
    slot: str | None = None


@dataclass(frozen=True)
class Replication:
    """A replication as the store knows it. `captured`: the event log has every transaction that committed before it,
    and its batches up to number `batches`; None before the start. `slot` and `publication` are its own in the source,
    named after its uid, or the existing ones of its options. `system_id`: of the source's cluster, so that another
    one is noticed. `gtids`: of all transactions before `captured`, by which a server that took over is read on. They
    are None if they are not known, or the source has none.
    """

    uid: str
    name: str
    kind: SourceKind
    source_conn_id: str
    selection: Selection
    options: ReplicationOptions
    event_log: str
    slot: str
    publication: str
    state: ReplicationState
    created_at: datetime
    captured: LogPosition | None = None
    captured_at: datetime | None = None
    batches: int = 0
    system_id: str | None = None
    error: str | None = None
    gtids: str | None = None


@dataclass(frozen=True)
class BackfillProgress:
    """How far a backfill is. `expected`: rows by the source's statistics; `done`: rows that were read."""

    expected: int
    done: int
    at: datetime

    @property
    def percent(self) -> float:
        """From 0 to 100; statistics may be old."""
        return 100.0 if self.expected <= 0 else min(100.0, 100.0 * self.done / self.expected)


@dataclass(frozen=True)
class ReplicatedObject:
    """An object of a replication. `source_id`: the table's own identity there (an OID), which a rename keeps.

    `snapshot`: the position its backfill is exact at. `applied`: the target has every event before it. `applied` is ≥
    `snapshot`, except for an append-only target, in which a copy takes the place of no event. Both are None until the
    first backfill is complete. For an object without a backfill they are the position at which it began. `writes`:
    numbers drawn for writes to the target, backfills as well as apply jobs, so that an older write is known.
    `needs_backfill`: why it should be backfilled again; `gone`: the source lacks it. `problem`: what the last run
    met.
    """

    uid: str
    replication_uid: str
    name: ObjectName
    source_id: str
    schema: TableSchema
    mode: WriteMode
    target: TableRef
    state: ObjectState
    snapshot: LogPosition | None = None
    applied: LogPosition | None = None
    applied_at: datetime | None = None
    writes: int = 0
    progress: BackfillProgress | None = None
    needs_backfill: str | None = None
    gone: bool = False
    problem: str | None = None
    selected: bool = True  # False: the selection does not name it any more; what was written stays


@dataclass(frozen=True)
class FoundObject:
    """A table as the catalog of the source has it now. It lacks the columns that are not selected, and those that its
    log does not have (`excluded`).

    `rows`: by the source's statistics. `unsupported`: why it cannot be replicated, and the fix. `generated`: columns
    that are left out because the log does not have them. `held`: columns that some name of theirs hides. `notices`:
    what somebody should look at, in words. `parted`: its rows are in partitions. `any_case`: as patterns fit its names.
    """

    name: ObjectName
    source_id: str
    schema: TableSchema
    rows: int = 0
    excluded: tuple[str, ...] = ()
    unsupported: str | None = None
    generated: tuple[str, ...] = ()
    held: tuple[HeldColumn, ...] = ()
    notices: tuple[str, ...] = ()
    parted: bool = False
    any_case: NameCase = NameCase.NONE

    @property
    def folds_columns(self) -> bool:
        """Whether names of columns are the same in any case."""
        return self.any_case is not NameCase.NONE

    @property
    def folds_tables(self) -> bool:
        """Whether names of schemas and tables are."""
        return self.any_case is NameCase.ALL


@dataclass(frozen=True)
class HeldTable:
    """A table that is excluded because of these names of it; its name now (`name`) does not matter."""

    source_id: str
    name: ObjectName
    names: tuple[ObjectName, ...]


class Hinders(StrEnum):
    """How far a problem of a source reaches."""

    REPLICATION = "replication"  # its own slot or publication cannot be used
    SERVER = "server"  # the server, or what the user may do in it; a replication that runs may go on all the same
    TABLE = "table"  # these tables cannot be replicated
    BACKFILL = "backfill"  # these tables cannot be copied; changes of those that were still come


@dataclass(frozen=True)
class SourceProblem:
    """A problem that keeps a source from being replicated. `text`: the problem and its fix. `source_ids`: of its
    tables.
    """

    text: str
    hinders: Hinders
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Actor:
    """The one who moves a state, why, and in which run of a DAG (`<dag>/<run>/<task>/<map index>`)."""

    who: str
    why: str = ""
    run: str | None = None


@dataclass(frozen=True)
class ReplicationTransition:
    """A move that was made, as the history keeps it. `object_uid`: None for a move of the whole replication.

    `act`: its name; `before`, `after`: states. `position`: where it led to, if it is of a position.
    """

    replication_uid: str
    object_uid: str | None
    act: str
    before: str
    after: str
    at: datetime
    by: Actor
    position: LogPosition | None = None
