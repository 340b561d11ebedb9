"""The target of an object: the table that it is, and writes to it that happen once.

Delta skips a commit whose number is not above the last of the same application. The mark that is read back shows
whether it was skipped. So an attempt that was taken for dead, and comes late, writes nothing and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from tidemark.delivery.driver.exactly_once import target_schema, until_committed
from tidemark.delivery.planning.delivery import row_counts
from tidemark.errors import (
    NotADeltaTable,
    ReplicationRefused,
    TableNotFound,
    TargetLost,
    TargetMovedOn,
    TargetNotDelta,
)
from tidemark.failpoints import failpoint
from tidemark.jobs.own_tables import make_table
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Commit
from tidemark.replication.driver.columns import MAPPING, evolve, properties_of, target_columns
from tidemark.replication.model.marks import APPS, SEGMENTS, ObjectMark, ObjectWrite, object_app_id, parse_object_mark
from tidemark.replication.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MarkedCommit", "Target"]

_BACKFILL = "Request a backfill of its object, which recreates or overwrites the table."
_REPLACED = ("CREATE OR REPLACE", "REPLACE", "CLONE", "RESTORE")


def _never_due() -> None:
    return None


@dataclass(frozen=True)
class MarkedCommit:
    """A write of the object that its target has. `rows`: by Delta's own metrics. `stands`: the table was not restored
    or replaced since.
    """

    mark: ObjectMark
    version: int
    rows: Mapping[str, int]
    stands: bool


@dataclass(frozen=True)
class Target:
    """The table at `ref.path` as the target of one object. A `table_id` of "" means a table not made yet, or any table
    at that path.

    `options`: storage options of the lake. `stop_if_due` is asked before each write. `had`: the id of a table whose
    rows are the object's, though another may lie there now.
    """

    ref: TableRef
    store_id: str
    object_uid: str
    options: Mapping[str, str] | None = field(default=None, repr=False)
    stop_if_due: Callable[[], None] = _never_due
    had: str = ""

    def anew(self) -> Target:
        """The same for a backfill, which needs nothing of the old table: even if that is gone or another."""
        return replace(self, ref=replace(self.ref, table_id=""), had=self.ref.table_id)

    @property
    def app_id(self) -> str:
        """Delta's application id of the object's writes."""
        return object_app_id(self.store_id, self.object_uid)

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return path_name(self.ref.path)

    def log(self) -> DeltaLog | None:
        """Its log; None where there is no table yet. Raises TargetLost for another table than the one that is known,
        or none; TargetNotDelta.
        """
        try:
            log = DeltaLog.open(self.ref.path, self.options)
        except TableNotFound as error:
            if self.ref.table_id:
                raise self._lost() from error
            return None
        except NotADeltaTable as error:
            raise TargetNotDelta(target=self.ref.name, problem=error.facts.get("problem", str(error))) from error
        found = log.state().table_id
        if self.ref.table_id not in ("", found):
            raise self._lost(f"is another table now: it had the id {self.ref.table_id}, now {found}")
        return log

    def known(self) -> Target:
        """The same with the table's id. Raises TargetLost."""
        log = self.log()
        if log is None:
            raise self._lost()
        return replace(self, ref=replace(self.ref, path=log.uri, table_id=log.state().table_id), had="")

    def schema(self) -> StructType:
        """Its columns now. Raises TargetLost."""
        log = self.log()
        if log is None:
            raise self._lost()
        return target_schema(log)

    def make(
        self,
        session: SparkSession,
        schema: TableSchema,
        mode: WriteMode,
        *,
        replication: str,
        earlier: Sequence[str] = (),
    ) -> Target:
        """Make the table if it does not exist, with row tracking, so that it can have streams. Raises
        ReplicationRefused, in the name of `replication`, for a table that has rows and is no target of this object.
        `earlier`: uids of objects that are no more, whose target the caller takes over.
        """
        if self.log() is None:
            wanted = target_columns(schema, mode)
            make_table(session, self.ref.path, wanted, properties=properties_of(wanted), options=self.options)
        self._require_ours(session, replication, earlier)
        return self.known()

    def evolve(self, session: SparkSession, schema: TableSchema) -> None:
        """Give the table the columns of `schema` that it lacks, and widen those it has. A second run does nothing.
        Raises TargetLost.
        """
        log = self.log()
        if log is None:
            raise self._lost()
        metadata = log.state().metadata
        evolve(session, self.name, target_schema(log), schema, tuple(metadata.configuration))

    def allow_names(self, session: SparkSession, columns: StructType) -> None:
        """See to it that the table takes names that Parquet does not. A second run does nothing."""
        log = self.log()
        if log is not None and MAPPING not in log.state().metadata.configuration and MAPPING in properties_of(columns):
            session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{MAPPING}' = 'name')")

    def newest(self) -> MarkedCommit | None:
        """The newest write of the object that the table's log has; None if it has none."""
        return next(self.writes(), None)

    def writes(self) -> Iterator[MarkedCommit]:
        """The writes of the object, the newest first."""
        log = self.log()
        stands = True
        for commit in () if log is None else _backwards(log):
            mark = parse_object_mark(commit.user_metadata)
            number = commit.transactions.get(self.app_id)
            if number is not None and mark is not None:  # auto compaction repeats a mark, without the number
                yield MarkedCommit(mark, commit.version, row_counts(commit), stands)
            stands = stands and not _replaces(commit)

    def has(self, mark: ObjectMark, until: LogPosition | None = None) -> bool:
        """Whether the table has this write, or a later one of the same number. `until`: where its range ends, for a
        caller that asks before it knows the segments.

        Raises TargetMovedOn if a newer number has written. Raises TargetLost if another write has its number, or if the
        table's earlier content is gone. The latter does not count if `mark` is of a backfill that the table never had,
        which needs none of that content.
        """
        newest = self.newest()
        if newest is None:
            return self._knows_nothing_of(mark)
        if newest.mark.number > mark.number:
            raise TargetMovedOn(target=self.ref.name, found=newest.mark.number, number=mark.number)
        had = newest.mark.txn_version >= mark.txn_version
        if not newest.stands and (had or mark.kind is ObjectWrite.APPLY):
            raise self._lost(f"was restored or replaced after write {newest.mark.number} of its object")
        if newest.mark.number == mark.number and not mark.may_follow(newest.mark, until):
            raise self._reused(mark)
        return had

    def _knows_nothing_of(self, mark: ObjectMark) -> bool:
        """False, for a table whose log has no mark. If log clean-up took the marks, Delta still has the newest number,
        but not the kind of its write. Raises what `has` does.
        """
        log, number = self.log(), self._number()
        if log is None or number is None:
            return False
        if number // SEGMENTS > mark.number:
            raise TargetMovedOn(target=self.ref.name, found=number // SEGMENTS, number=mark.number)
        if number >= mark.txn_version:
            raise self._reused(mark)
        if mark.kind is ObjectWrite.APPLY and any(_replaces(commit) for commit in _backwards(log)):
            raise self._lost(f"was restored or replaced after write {number // SEGMENTS} of its object")
        return False

    def _number(self) -> int | None:
        """Delta's number of the newest write of the object, which outlives the commit; None where there was none."""
        log = self.log()
        return None if log is None else log.state().transactions.get(self.app_id)

    def _reused(self, mark: ObjectMark) -> TargetLost:
        problem = f"has another write {mark.number} of its object, as after a restore of the control store"
        remedy = "Nothing was written. Drop the table, then request a backfill of its object."
        return TargetLost(target=self.ref.name, problem=problem, remedy=remedy)

    def write_once(
        self,
        session: SparkSession,
        mark: ObjectMark,
        write: Callable[[], None],
        *,
        point: str,
        may_do_nothing: bool = False,
    ) -> bool:
        """Run `write`, one Delta command on the table in `session`, with the mark in its commit, unless the table has
        it. Says whether the table had it.

        If another writer commits first, the command is tried again. `may_do_nothing`: the command makes no commit where
        it changes no row, and then runs again in another attempt. `point`: of the tests' faults. Raises what `has`
        does, and TargetLost where Delta skipped the command for a number that its log does not show.
        """
        return until_committed()(self._write_unless_there, session, mark, write, point, may_do_nothing)

    def _write_unless_there(
        self, session: SparkSession, mark: ObjectMark, write: Callable[[], None], point: str, may_do_nothing: bool
    ) -> bool:
        if self.has(mark):
            return True
        self.stop_if_due()
        failpoint(f"{point}.before")
        numbers = {APP_ID: self.app_id, TXN_VERSION: str(mark.txn_version), USER_METADATA: mark.to_text()}
        with under(session, numbers):
            write()
        failpoint(f"{point}.written")
        if not self.has(mark) and not may_do_nothing:
            raise self._reused(mark)
        return False

    def _require_ours(self, session: SparkSession, replication: str, earlier: Sequence[str]) -> None:
        if self.known().ref.table_id in (self.ref.table_id, self.had) or self._number() is not None:
            return
        if self._is_of(earlier) or session.read.format("delta").load(self.ref.path).isEmpty():
            return
        problem = (
            f"its target {self.ref.name} has rows that are not of this object. If they are of a replication "
            "that was dropped, request a backfill, which takes the table over. Else drop the table, or choose another "
            "target."
        )
        raise ReplicationRefused(replication=replication, problem=problem)

    def _is_of(self, uids: Sequence[str]) -> bool:
        """Whether everything of Tidemark in the log is of these objects, and something is."""
        log = self.log()
        apps = {object_app_id(self.store_id, uid) for uid in uids}
        if log is None or not apps:
            return False
        found = {app for app in log.state().transactions if app.startswith(APPS)}
        return bool(found) and found <= apps

    def _lost(self, problem: str = "no longer exists") -> TargetLost:
        return TargetLost(target=self.ref.name, problem=problem, remedy=f"Nothing was written. {_BACKFILL}")


def _replaces(commit: Commit) -> bool:
    return (commit.operation or "").upper().startswith(_REPLACED)


def _backwards(log: DeltaLog) -> Iterator[Commit]:
    for version in range(log.head(), log.earliest() - 1, -1):
        yield from log.commits(version - 1, version)
