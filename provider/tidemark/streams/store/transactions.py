"""Transactions in the store: what is written ahead, and each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.delivery.model.transactions import CommitResult, Plan, Transaction, TransactionState
from tidemark.errors import TransactionNotFound
from tidemark.model.codec import from_json, to_json
from tidemark.model.statements import Evidence, PlannedWrite, Statement, TransactionKey
from tidemark.model.streams import Addressing, StreamWindow, TableRef
from tidemark.streams.store.schema import statements, transactions, windows
from tidemark.streams.store.streams import lineage

__all__ = [
    "StoredTransaction",
    "add_statements",
    "add_windows",
    "by_id",
    "close",
    "columns_of",
    "current",
    "held",
    "insert",
    "latest",
    "mark_fenced",
    "mark_submitted",
    "of_run",
    "of_stream",
    "planned_statement",
    "record_evidence",
    "release",
    "relocate_window",
    "remove_statements",
    "renew_lease",
    "renumber",
    "retarget",
    "set_serial",
    "stored_of",
    "take_over",
]


@dataclass(frozen=True)
class StoredTransaction:
    """A transaction with what only the store knows: row, serial, evidence so far, and statements that met a fence."""

    id: str
    transaction: Transaction
    serial: int
    evidence: Mapping[int, Evidence]
    fenced: tuple[int, ...]

    @property
    def lead(self) -> str:
        """Uid of the lead stream: the first of the transaction, fixed at begin (step 7)."""
        return self.transaction.windows[0].stream_uid

    @property
    def all_evidence(self) -> Mapping[int, Evidence]:
        """The evidence known of each statement, by its number: of a transaction that has ended from its result."""
        result = self.transaction.result
        return {**self.evidence, **({one.number: one for one in result.evidence} if result is not None else {})}


def current(connection: sa.Connection, key: TransactionKey) -> StoredTransaction | None:
    """The transaction of `key` that is not released, or None: a released key may begin again."""
    row = connection.execute(_of_key(key).where(transactions.c.state != TransactionState.RELEASED.value)).mappings()
    return _stored(connection, row.first())


def held(connection: sa.Connection, key: TransactionKey) -> tuple[StoredTransaction, ...]:
    """The open transactions that `key` has: its own, if nobody took it over, and those that it took over."""
    own = _of_key(key).where(transactions.c.taken_by.is_(None))
    taken = sa.select(transactions).where(transactions.c.taken_by == to_json(key))
    is_open = transactions.c.state == TransactionState.OPEN.value
    rows = [row for one in (own, taken) for row in connection.execute(one.where(is_open)).mappings().all()]
    return tuple(one for row in rows if (one := _stored(connection, row)) is not None)


def latest(connection: sa.Connection, key: TransactionKey) -> StoredTransaction:
    """The transaction of `key`, a released one if there is no other. Raises TransactionNotFound."""
    found = current(connection, key)
    if found is None:
        newest = _of_key(key).order_by(transactions.c.opened_at.desc(), transactions.c.id).limit(1)
        found = _stored(connection, connection.execute(newest).mappings().first())
    if found is None:
        raise TransactionNotFound(key=str(key))
    return found


def by_id(connection: sa.Connection, transaction_id: str) -> StoredTransaction:
    """The transaction of that row. Raises TransactionNotFound."""
    row = connection.execute(sa.select(transactions).where(transactions.c.id == transaction_id)).mappings().first()
    found = _stored(connection, row)
    if found is None:
        raise TransactionNotFound(key=transaction_id)
    return found


def of_stream(connection: sa.Connection, stream_uid: str, limit: int) -> tuple[StoredTransaction, ...]:
    """The newest transactions that took from the stream, newest first, also from before it was re-based."""
    query = (
        sa.select(transactions)
        .join(windows, windows.c.transaction_id == transactions.c.id)
        .where(windows.c.stream_uid.in_(lineage(connection, stream_uid)))
        .order_by(transactions.c.opened_at.desc(), transactions.c.id)
        .limit(limit)
    )
    found = (_stored(connection, row) for row in connection.execute(query).mappings().all())
    return tuple(one for one in found if one is not None)


def of_run(connection: sa.Connection, stream_uid: str, run: str) -> tuple[StoredTransaction, ...]:
    """The transactions of a run that took from the stream, oldest first; `run` is its id, or a whole key in words."""
    of = transactions.c
    in_words = of.dag_id + "/" + of.run_id + "/" + of.task_id + "/" + sa.cast(of.map_index, sa.Text)
    query = (
        sa.select(transactions)
        .join(windows, windows.c.transaction_id == transactions.c.id)
        .where(
            windows.c.stream_uid.in_(lineage(connection, stream_uid)),
            (transactions.c.run_id == run) | (in_words == run),
        )
        .order_by(transactions.c.opened_at, transactions.c.id)
    )
    found = (_stored(connection, row) for row in connection.execute(query).mappings().all())
    return tuple(one for one in found if one is not None)


def insert(connection: sa.Connection, transaction_id: str, transaction: Transaction, serial: int) -> None:
    """Write a transaction ahead: windows, versions and plan by value, before anything acts on them (V2)."""
    connection.execute(transactions.insert().values(id=transaction_id, **columns_of(transaction, serial)))
    add_windows(connection, transaction_id, transaction.windows, first=0)
    add_statements(connection, transaction_id, transaction.plan.statements)


def columns_of(transaction: Transaction, serial: int) -> dict[str, object]:
    """The values of its row."""
    key, result = transaction.key, transaction.result
    return {
        "dag_id": key.dag_id,
        "run_id": key.run_id,
        "task_id": key.task_id,
        "map_index": key.map_index,
        "state": transaction.state.value,
        "serial": serial,
        "owner": transaction.owner,
        "lease_until": transaction.lease_until,
        "submitted": transaction.submitted,
        "job_deadline": transaction.job_deadline,
        "opened_at": transaction.opened_at,
        "closed_at": None if result is None else result.committed_at,
        "result": None if result is None else to_json(result),
    }


def add_windows(connection: sa.Connection, transaction_id: str, added: Sequence[StreamWindow], *, first: int) -> None:
    """Pin windows from position `first` on."""
    for position, window in enumerate(added, start=first):
        connection.execute(
            windows.insert().values(
                transaction_id=transaction_id,
                position=position,
                stream_uid=window.stream_uid,
                start_version=window.start,
                end_version=window.end,
                pinned=to_json(window),
            )
        )


def add_statements(connection: sa.Connection, transaction_id: str, added: Sequence[Statement]) -> None:
    """Register statements; each before it runs (step 7)."""
    for statement in added:
        connection.execute(
            statements.insert().values(
                transaction_id=transaction_id,
                number=statement.number,
                digest=statement.digest,
                planned_write=to_json(statement.write),
                app_id=statement.app_id,
                txn_version=statement.txn_version,
                fenced=False,
                **_target_columns(statement.target, statement.base_version),
            )
        )


def remove_statements(connection: sa.Connection, transaction_id: str, numbers: Sequence[int]) -> None:
    """Take statements out of the plan; only when no job can be alive and no target holds them (I6, I7)."""
    for number in numbers:
        own = (statements.c.transaction_id == transaction_id) & (statements.c.number == number)
        connection.execute(statements.delete().where(own))


def set_serial(connection: sa.Connection, transaction_id: str, serial: int) -> None:
    """The serial of a transaction that got its lead stream after begin."""
    connection.execute(_open(transaction_id).values(serial=serial))


def renew_lease(
    connection: sa.Connection,
    transaction_id: str,
    *,
    holder: TransactionKey | None,
    until: datetime,
    owner: str | None = None,
) -> bool:
    """Keep an open transaction from others until `until` (now gives it up), if `holder` still has it: True if so.

    `holder` is the key that took it over; None: its own.
    """
    values: dict[str, object] = {"lease_until": until}
    if owner is not None:
        values["owner"] = owner
    held = transactions.c.taken_by.is_(None) if holder is None else transactions.c.taken_by == to_json(holder)
    return connection.execute(_open(transaction_id).where(held).values(values)).rowcount == 1


def take_over(
    connection: sa.Connection, transaction_id: str, *, by: TransactionKey | None, owner: str, until: datetime
) -> None:
    """Another key finishes this open transaction from now on (step 4); None: its own key has it back."""
    taken_by = None if by is None else to_json(by)
    connection.execute(_open(transaction_id).values(taken_by=taken_by, owner=owner, lease_until=until))


def mark_submitted(connection: sa.Connection, transaction_id: str, *, deadline: datetime, lease: datetime) -> None:
    """From here on a job may exist: the window stays pinned (V1) and `deadline` counts."""
    connection.execute(_open(transaction_id).values(submitted=True, job_deadline=deadline, lease_until=lease))


def close(connection: sa.Connection, transaction_id: str, state: TransactionState, result: CommitResult) -> None:
    """Committed or superseded, with the result that every later run of the key gets."""
    closing = _open(transaction_id).values(state=state.value, result=to_json(result), closed_at=result.committed_at)
    connection.execute(closing)


def release(connection: sa.Connection, transaction_id: str, *, at: datetime) -> None:
    """Nothing was written; windows and key are free again."""
    connection.execute(_open(transaction_id).values(state=TransactionState.RELEASED.value, closed_at=at))


def relocate_window(connection: sa.Connection, transaction_id: str, stream_uid: str, to: TableRef) -> None:
    """The pinned window of the stream is read where its source is stored now; its bounds stay."""
    own = (windows.c.transaction_id == transaction_id) & (windows.c.stream_uid == stream_uid)
    pinned = from_json(StreamWindow, connection.execute(sa.select(windows.c.pinned).where(own)).scalar_one())
    connection.execute(windows.update().where(own).values(pinned=to_json(replace(pinned, source=to))))


def record_evidence(connection: sa.Connection, transaction_id: str, evidence: Evidence) -> bool:
    """Keep what was read back, if it speaks of the statement as it stands: number, digest, table id and version."""
    matching = _statement(transaction_id, evidence.number).where(
        statements.c.digest == evidence.digest,
        statements.c.target_table_id == evidence.table_id,
        statements.c.txn_version == evidence.txn_version,
    )
    return connection.execute(matching.values(evidence=to_json(evidence), fenced=False)).rowcount == 1


def mark_fenced(connection: sa.Connection, transaction_id: str, number: int) -> None:
    """A job met a fence at this statement: it needs a new version (step 19)."""
    connection.execute(_statement(transaction_id, number).values(fenced=True))


def renumber(connection: sa.Connection, transaction_id: str, numbers: Sequence[int], txn_version: int) -> None:
    """New Delta transaction versions for statements whose old one is shut; only when no job can be alive (I6)."""
    for number in numbers:
        connection.execute(
            _statement(transaction_id, number).values(txn_version=txn_version, fenced=False, evidence=None)
        )


def retarget(
    connection: sa.Connection, transaction_id: str, number: int, *, target: TableRef, base_version: int
) -> None:
    """The statement now means the table with this id (step 20); only when no job can be alive (I6)."""
    connection.execute(
        _statement(transaction_id, number).values(evidence=None, **_target_columns(target, base_version))
    )


def planned_statement(row: sa.RowMapping) -> Statement:
    """The statement in a row that has the columns of `tidemark_statement`."""
    target = TableRef(
        name=row["target_name"],
        path=row["target_path"],
        table_id=row["target_table_id"],
        addressing=Addressing(row["target_addressing"]),
    )
    return Statement(
        number=row["number"],
        write=from_json(PlannedWrite, row["planned_write"]),
        target=target,
        base_version=row["base_version"],
        app_id=row["app_id"],
        txn_version=row["txn_version"],
    )


def _of_key(key: TransactionKey) -> sa.Select[tuple[object, ...]]:
    return sa.select(transactions).where(
        transactions.c.dag_id == key.dag_id,
        transactions.c.run_id == key.run_id,
        transactions.c.task_id == key.task_id,
        transactions.c.map_index == key.map_index,
    )


def _open(transaction_id: str) -> sa.Update:
    return transactions.update().where(
        transactions.c.id == transaction_id, transactions.c.state == TransactionState.OPEN.value
    )


def _statement(transaction_id: str, number: int) -> sa.Update:
    return statements.update().where(statements.c.transaction_id == transaction_id, statements.c.number == number)


def _target_columns(target: TableRef, base_version: int) -> dict[str, object]:
    return {
        "target_name": target.name,
        "target_path": target.path,
        "target_table_id": target.table_id,
        "target_addressing": target.addressing.value,
        "base_version": base_version,
    }


def _stored(connection: sa.Connection, row: sa.RowMapping | None) -> StoredTransaction | None:
    if row is None:
        return None
    pinned = sa.select(windows.c.pinned).where(windows.c.transaction_id == row["id"]).order_by(windows.c.position)
    planned = sa.select(statements).where(statements.c.transaction_id == row["id"]).order_by(statements.c.number)
    rows = connection.execute(planned).mappings().all()
    return stored_of(row, connection.execute(pinned).scalars().all(), rows)


def stored_of(row: sa.RowMapping, pinned: Sequence[str], rows: Sequence[sa.RowMapping]) -> StoredTransaction:
    """The transaction of that row, with the texts of its windows and the rows of its statements, both in order."""
    transaction = Transaction(
        key=TransactionKey(row["dag_id"], row["run_id"], row["task_id"], row["map_index"]),
        state=TransactionState(row["state"]),
        windows=tuple(from_json(StreamWindow, text) for text in pinned),
        plan=Plan(tuple(planned_statement(statement) for statement in rows)),
        owner=row["owner"],
        lease_until=row["lease_until"],
        submitted=row["submitted"],
        job_deadline=row["job_deadline"],
        opened_at=row["opened_at"],
        result=None if row["result"] is None else from_json(CommitResult, row["result"]),
        superseded_by=None if row["taken_by"] is None else from_json(TransactionKey, row["taken_by"]),
    )
    found = {one["number"]: from_json(Evidence, one["evidence"]) for one in rows if one["evidence"] is not None}
    fenced = tuple(one["number"] for one in rows if one["fenced"])
    return StoredTransaction(row["id"], transaction, row["serial"], found, fenced)
