"""Taking back what was submitted and written nowhere: the targets' logs say so, and no job is left (PROTOCOL step 18).

No fence is needed for it, unlike for `replan`. Every writing job is known to have ended, not only to be past its
deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import MarkKind, mark_of
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.delivery.planning.delivery import Finding, judge
from tidemark.errors import CatalogTableMoved, SourceError, SubmitRefused, TargetError, TidemarkError
from tidemark.errors.lasting import PERMANENT
from tidemark.model.statements import Statement, TransactionKey
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.jobs import UnseenJob
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.job_orders import same_window
from tidemark.streams.worker.rollback import give_up, release
from tidemark.streams.worker.sources import Tables, open_table
from tidemark.streams.worker.targets import open_target

__all__ = [
    "Before",
    "Remains",
    "end_attempt",
    "let_go",
    "look_before",
    "release_unwritten",
    "remains_of",
    "require_unchanged",
]

log = logging.getLogger(__name__)

_UNCLEAR: tuple[type[TidemarkError], ...] = (TargetError, SourceError)


@dataclass(frozen=True)
class Remains:
    """Why an open transaction cannot be taken back. `holder`: another key has it. `job_until`: the deadline of a job
    that nobody saw end. `job_host`: the host that was to start it, None if it is unknown.

    `written`: targets that hold their part. `unclear`: those whose logs do not tell, and why. `without`: those that
    hold nothing of it.
    """

    holder: TransactionKey | None = None
    job_until: datetime | None = None
    job_host: str | None = None
    written: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()  # of the statements that are written

    def __str__(self) -> str:
        if self.holder is not None:
            return f"{self.holder} has it"
        if self.job_until is not None:
            return f"a job of it, which nobody saw end, may write until its deadline, {self.job_until}"
        parts = [f"{', '.join(self.written)} holds its part"] if self.written else []
        parts += [f"{', '.join(self.without)} holds nothing of it"] if self.without else []
        return ", ".join((*parts, *self.unclear))


@dataclass(frozen=True)
class Before:
    """An open transaction when its targets were looked at. `tries`: how many writing jobs it has had. `unseen`: those
    that nobody saw end.
    """

    stored: StoredTransaction
    tries: int
    unseen: tuple[UnseenJob, ...]


def end_attempt(store: ControlStore, key: TransactionKey, error: BaseException, *, tables: Tables = open_table) -> None:
    """End an attempt that failed with `error`: what was not submitted is free again. Submitted windows stay pinned for
    the next attempt or consumer. If none can help, or a table of a catalog is elsewhere, they are free, too. They stay
    pinned if a target has any of them.
    """
    if isinstance(error, (*PERMANENT, CatalogTableMoved)):
        let_go(store, key, tables=tables)
    else:
        give_up(store, key, holder=None)


def let_go(
    store: ControlStore, key: TransactionKey, *, holder: TransactionKey | None = None, tables: Tables = open_table
) -> bool:
    """Free the windows if no target has any of them; else keep them pinned and give the lease up. True: they are free.

    Targets that cannot be read now are no error: the windows stay pinned. A second run does what is left, or nothing.
    """
    try:
        remains = release_unwritten(store, key, holder=holder, tables=tables)
        why = str(remains)
    except TidemarkError as error:
        remains, why = Remains(), f"{type(error).__name__}: {error}"
    if remains is None:
        return True
    log.warning("Transaction %s stays open, to be finished: %s", key, why)
    give_up(store, key, holder=holder)
    return False


def release_unwritten(
    store: ControlStore, key: TransactionKey, *, holder: TransactionKey | None = None, tables: Tables = open_table
) -> Remains | None:
    """Free the windows and the key if nothing of them was written anywhere and nobody is left who could. None: done, or
    not open at all.

    The targets' logs are read for this transaction's marks. It is released only if it is then as it was before, with no
    further job. `holder`: the key that holds it, as in `give_up`. Raises SubmitRefused if it changed in between, and
    LakeError if the storage is away.
    """
    before = store.read(lambda connection: look_before(connection, key))
    if before is None:
        return None
    remains = remains_of(before, holder, store.store_id, tables)
    if remains is not None:
        return remains

    def move(connection: sa.Connection) -> None:
        require_unchanged(connection, before)
        release(connection, store, before.stored)

    store.write(move)
    log.info("Transaction %s is taken back: no target has any of it, and its streams are free.", key)
    return None


def look_before(connection: sa.Connection, key: TransactionKey) -> Before | None:
    """None: the key has no open transaction."""
    stored = transactions.current(connection, key)
    if stored is None or stored.transaction.state is not TransactionState.OPEN:
        return None
    return Before(stored, jobs.count_writes(connection, stored.id), jobs.unseen(connection, stored.id))


def require_unchanged(connection: sa.Connection, before: Before) -> None:
    """Compare-and-set: a job that was ordered since the look may write (I6, I11). Raises SubmitRefused."""
    key = before.stored.transaction.key
    now = look_before(connection, key)
    same = now is not None and now.stored.id == before.stored.id and now.tries == before.tries
    if now is None or not same or not same_window(now.stored.transaction, before.stored.transaction):
        raise SubmitRefused(key=str(key), problem="it changed while its targets were looked at")


def remains_of(
    before: Before,
    holder: TransactionKey | None,
    store_id: str,
    tables: Tables,
    *,
    or_else: tuple[type[TidemarkError], ...] = (),
) -> Remains | None:
    """The remains by the store and the targets' logs; None: no target has any of it, and nobody is left to write.

    A target that is gone or unreadable is unclear; the same for errors of `or_else`. Raises LakeError if the storage is
    away.
    """
    stored, transaction = before.stored, before.stored.transaction
    if transaction.superseded_by != holder:
        return Remains(holder=transaction.superseded_by or transaction.key)
    if not transaction.submitted:
        return None
    if before.unseen:
        return Remains(job_until=before.unseen[-1].deadline, job_host=before.unseen[-1].host)
    written: dict[int, str] = {}
    unclear, without = [], []
    for statement in transaction.plan.statements:
        name = statement.target.name
        finding = _finding(statement, transaction, store_id, tables, (*_UNCLEAR, *or_else))
        if statement.number in stored.evidence or finding is Finding.DELIVERED:
            written[statement.number] = name
        elif finding in (Finding.FREE, Finding.FENCED):
            without.append(name)
        else:
            unclear.append(f"it is not known whether {name} holds its part ({finding})")
    if not written and not unclear:
        return None
    names = _once(written.values())
    return Remains(written=names, unclear=_once(unclear), without=_once(without), numbers=tuple(written))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _finding(
    statement: Statement,
    transaction: Transaction,
    store_id: str,
    tables: Tables,
    unclear: tuple[type[TidemarkError], ...],
) -> Finding | str:
    """As the job itself looks, or the error of `unclear` by which it cannot be known.

    A table that was set back by hand tells nothing.
    """
    try:
        target = open_target(statement.target, tables)
        head = target.head()
        found_id = target.state(head).table_id
        same = found_id == statement.target.table_id
        if same and head < statement.base_version:
            return Finding.REWOUND
        return judge(
            mark_of(store_id, transaction.windows, statement, MarkKind.WRITE),
            expected_id=statement.target.table_id,
            found_id=found_id,
            commits=target.commits(statement.base_version, head) if same else (),
            version_at=target.version_at,
        ).finding
    except unclear as error:
        return f"{type(error).__name__}: {error}"
