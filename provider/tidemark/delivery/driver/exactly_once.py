"""Statements that reach their target once, however often they run (PROTOCOL steps 9–14).

Delta stores a transaction number per application in the same commit as the rows, and a mark in the commit's
`userMetadata`. A repeated number is skipped silently, and survives RESTORE. So a statement counts as done only after
its mark has been read back from the target's log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from tidemark.delivery.driver.checks import filled_by_delta
from tidemark.delivery.model.marks import Mark, MarkKind, ends_of_views, mark_of
from tidemark.delivery.model.quarantine import Split
from tidemark.delivery.model.transactions import QUARANTINED
from tidemark.delivery.planning.delivery import Delivery, Finding, judge
from tidemark.errors import (
    Fenced,
    NotADeltaTable,
    SerialReused,
    Superseded,
    TableNotFound,
    TargetChanged,
    TargetNotDelta,
    TargetNotFound,
    TargetRewound,
    TidemarkError,
)
from tidemark.failpoints import failpoint
from tidemark.jobs.schemas import struct_type
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Evidence, Statement, TransactionKey, WriteAs
from tidemark.model.streams import StreamWindow
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Delivering",
    "append_nothing",
    "fence_statement",
    "find_delivery",
    "no_rows",
    "open_target",
    "partition_columns",
    "target_schema",
    "until_committed",
    "write_statement",
]

ATTEMPTS = 10
LONGEST_PAUSE = 10.0  # seconds; a job learns after the pause that it must stop
CONFLICTS = (  # siblings in Python, though one is the others' parent in the JVM
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


def _never_due() -> None:
    return None


@dataclass(frozen=True)
class Delivering:
    """The part that all statements of one transaction share.

    `options`: storage options of the lake. `stop_if_due` raises if the job was cancelled or its deadline has passed. It
    is called before each write (step 9). `attempts`: how often a conflicting write is tried, with pauses of `pause`
    seconds.
    """

    store_id: str
    key: TransactionKey | None
    windows: tuple[StreamWindow, ...]
    options: Mapping[str, str] | None = field(default=None, repr=False)
    stop_if_due: Callable[[], None] = _never_due
    attempts: int = ATTEMPTS
    pause: Callable[[float], None] = time.sleep

    def mark(self, statement: Statement, kind: MarkKind) -> Mark:
        """The mark of this statement for these windows."""
        return mark_of(self.store_id, self.windows, statement, kind)


def open_target(statement: Statement, options: Mapping[str, str] | None) -> DeltaLog:
    """The target's log. Raises TargetNotFound, TargetNotDelta."""
    try:
        return DeltaLog.open(statement.target.path, options)
    except TableNotFound as error:
        raise TargetNotFound(target=statement.target.name) from error
    except NotADeltaTable as error:
        raise TargetNotDelta(target=statement.target.name, problem=error.facts.get("problem", str(error))) from error


def target_schema(log: DeltaLog) -> StructType:
    """The table's schema now, from its log."""
    return struct_type(log.state().metadata.schema_json)


def partition_columns(log: DeltaLog) -> tuple[str, ...]:
    """The table's partition columns now, from its log."""
    return log.state().metadata.partition_columns


def find_delivery(delivering: Delivering, statement: Statement) -> Delivery:
    """The state of this statement in the target's log (step 10), read at each call. It changes nothing.

    A log that ends before the base version was put back by hand, and its transaction numbers with it: REWOUND.
    """
    log = open_target(statement, delivering.options)
    head = log.head()
    found_id = log.state(head).table_id
    same = found_id == statement.target.table_id
    if same and head < statement.base_version:
        return Delivery(Finding.REWOUND, found_id)
    return judge(
        delivering.mark(statement, MarkKind.WRITE),
        expected_id=statement.target.table_id,
        found_id=found_id,
        commits=log.commits(statement.base_version, head) if same else (),
        version_at=log.version_at,
    )


def write_statement(
    session: SparkSession,
    delivering: Delivering,
    statement: Statement,
    write: Callable[[], None],
    split: Split | None = None,
    changes: int | None = None,
) -> Evidence:
    """Run `write`, one Delta command on the target in `session`, unless the target already holds this window.

    `split`: the constraints that sorted the rows of `write`; `changes`: the number of rows that it reads of the change
    set. The commit has both. If another writer commits first, the write is retried after random pauses, each longer.

    Idempotent: a second run writes nothing and returns the same evidence with `found=True`. Raises TargetChanged,
    TargetRewound, Superseded, Fenced, SerialReused; the next run then finds anything that this one has written.
    """
    tries = until_committed(delivering.attempts, delivering.pause)
    return tries(_write_unless_there, session, delivering, statement, write, split, changes)


def until_committed(attempts: int = ATTEMPTS, pause: Callable[[float], None] = time.sleep) -> Retrying:
    """A retry of commands that conflict with another writer, after random pauses, each longer. At last it raises the
    conflict. A command that conflicts has committed nothing.
    """
    return Retrying(
        retry=retry_if_exception_type(CONFLICTS),
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.2, max=LONGEST_PAUSE),
        sleep=pause,
        reraise=True,
    )


def fence_statement(session: SparkSession, delivering: Delivering, statement: Statement) -> Delivery:
    """The state after an empty commit with the statement's number and a fence mark, which bars late writers (step 18).

    It is FENCED, DELIVERED if the write came first, or CHANGED, REWOUND, SUPERSEDED. Idempotent: a second run finds the
    fence and writes nothing.
    """
    for attempt in range(1, ATTEMPTS + 1):
        delivery = find_delivery(delivering, statement)
        if delivery.finding is not Finding.FREE:
            return delivery
        try:
            mark = delivering.mark(statement, MarkKind.FENCE)
            with _marked(session, mark, mark.to_text()):
                append_nothing(session, statement, delivering.options)
            return find_delivery(delivering, statement)
        except CONFLICTS:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def append_nothing(session: SparkSession, statement: Statement, options: Mapping[str, str] | None) -> None:
    """Inserts no rows. With a transaction number this makes a commit without files."""
    path = statement.target.path
    rows = no_rows(session, path, target_schema(open_target(statement, options)))
    rows.write.format("delta").mode("append").save(path)


def no_rows(session: SparkSession, path: str, schema: StructType) -> DataFrame:
    """No rows for the table of that path and schema, to be appended.

    Generated and identity columns are left out, as Delta fills them itself.
    """
    given = [F.col(quoted(field.name)) for field in schema.fields if not filled_by_delta(field)]
    return session.read.format("delta").load(path).where(F.lit(False)).select(*given)


def _write_unless_there(
    session: SparkSession,
    delivering: Delivering,
    statement: Statement,
    write: Callable[[], None],
    split: Split | None,
    changes: int | None,
) -> Evidence:
    before = find_delivery(delivering, statement)
    if before.finding is Finding.DELIVERED:
        return _evidence(statement, before, found=True)
    _refuse_unless_free(delivering, statement, before)
    delivering.stop_if_due()
    return _write_once(session, delivering, statement, write, split, changes)


def _write_once(
    session: SparkSession,
    delivering: Delivering,
    statement: Statement,
    write: Callable[[], None],
    split: Split | None,
    changes: int | None,
) -> Evidence:
    mark = delivering.mark(statement, MarkKind.WRITE)
    failpoint(f"write{statement.number}.before")
    with _marked(session, mark, mark.to_text(split, changes, ends_of_views(delivering.windows))):
        write()
        after = find_delivery(delivering, statement)
        if after.finding is Finding.FREE:  # a DELETE without a match makes no commit (step 12)
            append_nothing(session, statement, delivering.options)
            after = find_delivery(delivering, statement)
    failpoint(f"write{statement.number}.after")
    if after.finding is Finding.FREE:  # both were skipped: an entry from before the base version blocks them
        after = Delivery(Finding.FOREIGN, after.table_id)
    _refuse_unless_delivered(delivering, statement, after)
    return _evidence(statement, after, found=False)


@contextmanager
def _marked(session: SparkSession, mark: Mark, text: str) -> Iterator[None]:
    """Sets number and `text` of the mark for Delta commands of `session` inside, and unsets both afterwards in any case
    (V15).
    """
    settings = {APP_ID: mark.app_id, TXN_VERSION: str(mark.txn_version), USER_METADATA: text}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def _refuse_unless_free(delivering: Delivering, statement: Statement, delivery: Delivery) -> None:
    if delivery.finding is not Finding.FREE:
        raise _refusal(delivering, statement, delivery)


def _refuse_unless_delivered(delivering: Delivering, statement: Statement, delivery: Delivery) -> None:
    if delivery.finding is not Finding.DELIVERED:
        raise _refusal(delivering, statement, delivery)


def _refusal(delivering: Delivering, statement: Statement, delivery: Delivery) -> TidemarkError:
    key, target = str(delivering.key), statement.target.name
    match delivery.finding:
        case Finding.CHANGED:
            return TargetChanged(target=target, expected=statement.target.table_id, found=delivery.table_id)
        case Finding.REWOUND:
            return TargetRewound(target=target, app_id=statement.app_id, txn_version=statement.txn_version)
        case Finding.FENCED:
            return Fenced(number=statement.number, key=key, target=target)
        case Finding.SUPERSEDED:
            return Superseded(key=key, by=f"transaction number {delivery.number} of the same stream")
        case _:
            return SerialReused(
                target=target, app_id=statement.app_id, txn_version=statement.txn_version, found=delivery.number
            )


def _evidence(statement: Statement, delivery: Delivery, *, found: bool) -> Evidence:
    if delivery.version is None:
        raise AssertionError("a delivered statement has a commit")
    return Evidence(
        number=statement.number,
        table_id=delivery.table_id,
        commit_version=delivery.version,
        txn_version=statement.txn_version,
        digest=statement.digest,
        rows=_counted(statement, delivery.rows or {}),
        found=found,
        changes=delivery.changes,
        bytes=delivery.bytes,
    )


def _counted(statement: Statement, rows: Mapping[str, int]) -> Mapping[str, int]:
    """The counts of a statement, with those of a quarantine under their own name."""
    quarantine = statement.write.write_as is WriteAs.QUARANTINE
    return {QUARANTINED: sum(rows.values())} if quarantine else rows
