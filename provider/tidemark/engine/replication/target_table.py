"""The target of an object: the table that it is, and writes to it that happen once.

Delta skips a commit whose number is not above the last of the same application; the mark that is read back tells
which of both it was. So an attempt that was taken for dead, and comes late, writes nothing and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from tidemark.engine.replication.columns import MAPPING, evolve, properties_of, target_columns
from tidemark.engine.settings import under
from tidemark.engine.writes.exactly_once import (
    APP_ID,
    ATTEMPTS,
    CONFLICTS,
    LONGEST_PAUSE,
    TXN_VERSION,
    USER_METADATA,
    target_schema,
)
from tidemark.errors import (
    NotADeltaTable,
    ReplicationRefused,
    SerialReused,
    TableNotFound,
    TargetChanged,
    TargetMovedOn,
    TargetNotDelta,
    TargetNotFound,
    TargetRewound,
)
from tidemark.kill_points import reach
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.model.replication_marks import SEGMENTS, ObjectMark, ObjectWrite, object_app_id, parse_object_mark
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Commit
from tidemark.planning.delivery import row_counts
from tidemark.planning.identifiers import quoted
from tidemark.planning.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MarkedCommit", "Target"]

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
    """The table at `ref.path` as the target of one object; a `table_id` of "" stands for a table not made yet.

    `options`: storage options of the lake. `stop_if_due` is asked before each write.
    """

    ref: TableRef
    store_id: str
    object_uid: str
    options: Mapping[str, str] | None = field(default=None, repr=False)
    stop_if_due: Callable[[], None] = _never_due

    @property
    def app_id(self) -> str:
        """Delta's application id of the object's writes."""
        return object_app_id(self.store_id, self.object_uid)

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return path_name(self.ref.path)

    def log(self) -> DeltaLog | None:
        """Its log; None where there is no table yet. Raises TargetChanged for another table, TargetNotDelta, and
        TargetNotFound where the one that is known is gone.
        """
        try:
            log = DeltaLog.open(self.ref.path, self.options)
        except TableNotFound as error:
            if self.ref.table_id:
                raise TargetNotFound(target=self.ref.name) from error
            return None
        except NotADeltaTable as error:
            raise TargetNotDelta(target=self.ref.name, problem=error.facts.get("problem", str(error))) from error
        found = log.state().table_id
        if self.ref.table_id not in ("", found):
            raise TargetChanged(target=self.ref.name, expected=self.ref.table_id, found=found)
        return log

    def known(self) -> Target:
        """The same with the table's id. Raises TargetNotFound."""
        log = self.log()
        if log is None:
            raise TargetNotFound(target=self.ref.name)
        return replace(self, ref=replace(self.ref, path=log.uri, table_id=log.state().table_id))

    def schema(self) -> StructType:
        """Its columns now. Raises TargetNotFound."""
        log = self.log()
        if log is None:
            raise TargetNotFound(target=self.ref.name)
        return target_schema(log)

    def make(self, session: SparkSession, schema: TableSchema, mode: WriteMode) -> Target:
        """Make the table where it is not there, with row tracking, so that it can have streams. Raises
        ReplicationRefused for one that has rows and is no target of this object.
        """
        if self.log() is None:
            wanted = target_columns(schema, mode)
            columns = ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in wanted.fields)
            listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties_of(wanted).items())
            try:
                session.sql(f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING delta TBLPROPERTIES ({listed})")
            except PySparkException:
                if self.log() is None:  # nobody else has made it meanwhile
                    raise
        self._require_ours(session)
        return self.known()

    def evolve(self, session: SparkSession, schema: TableSchema) -> None:
        """Give the table the columns of `schema` that it lacks, and widen those it has. A second run does nothing."""
        log = self.log()
        if log is None:
            raise TargetNotFound(target=self.ref.name)
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

        Raises TargetMovedOn where a newer number has written; TargetRewound where what it had is gone, unless `mark` is
        of a backfill, which asks nothing of what was there; SerialReused where another write has the number.
        """
        newest = self.newest()
        if newest is None:
            return self._knows_nothing_of(mark)
        if newest.mark.number > mark.number:
            raise TargetMovedOn(target=self.ref.name, found=newest.mark.number, number=mark.number)
        had = newest.mark.txn_version >= mark.txn_version
        if not newest.stands and (had or mark.kind is ObjectWrite.WRITE_DOWN):
            raise TargetRewound(target=self.ref.name, app_id=self.app_id, txn_version=newest.mark.txn_version)
        if newest.mark.number == mark.number and not mark.may_follow(newest.mark, until):
            raise self._reused(mark, newest.mark.txn_version)
        return had

    def _knows_nothing_of(self, mark: ObjectMark) -> bool:
        """False, for a table whose log has no mark. Where log clean-up took them Delta still has the newest number, but
        not of what it was. Raises what `has` does.
        """
        log, number = self.log(), self._number()
        if log is None or number is None:
            return False
        if number // SEGMENTS > mark.number:
            raise TargetMovedOn(target=self.ref.name, found=number // SEGMENTS, number=mark.number)
        if number >= mark.txn_version:
            raise self._reused(mark, number)
        if mark.kind is ObjectWrite.WRITE_DOWN and any(_replaces(commit) for commit in _backwards(log)):
            raise TargetRewound(target=self.ref.name, app_id=self.app_id, txn_version=number)
        return False

    def _number(self) -> int | None:
        """Delta's number of the newest write of the object, which outlives the commit; None where there was none."""
        log = self.log()
        return None if log is None else log.state().transactions.get(self.app_id)

    def _reused(self, mark: ObjectMark, found: int | None) -> SerialReused:
        return SerialReused(target=self.ref.name, app_id=self.app_id, txn_version=mark.txn_version, found=found)

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

        Where another writer commits first it is tried again. `may_do_nothing`: the command makes no commit where it
        changes no row, and then runs again in another attempt. `point`: of the tests' faults. Raises what `has` does,
        and SerialReused where Delta skipped the command for a number that its log does not show.
        """
        tries = Retrying(
            retry=retry_if_exception_type(CONFLICTS),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=LONGEST_PAUSE),
            reraise=True,
        )
        return tries(self._write_unless_there, session, mark, write, point, may_do_nothing)

    def _write_unless_there(
        self, session: SparkSession, mark: ObjectMark, write: Callable[[], None], point: str, may_do_nothing: bool
    ) -> bool:
        if self.has(mark):
            return True
        self.stop_if_due()
        reach(f"{point}.before")
        numbers = {APP_ID: self.app_id, TXN_VERSION: str(mark.txn_version), USER_METADATA: mark.to_text()}
        with under(session, numbers):
            write()
        reach(f"{point}.written")
        if not self.has(mark) and not may_do_nothing:
            raise self._reused(mark, None)
        return False

    def _require_ours(self, session: SparkSession) -> None:
        if self.ref.table_id or self.newest() is not None or self._number() is not None:
            return
        if session.read.format("delta").load(self.ref.path).isEmpty():
            return
        problem = (
            f"its target {self.ref.name} has rows that are not of this object. Drop the table, or choose another "
            "target."
        )
        raise ReplicationRefused(replication=self.object_uid, problem=problem)


def _replaces(commit: Commit) -> bool:
    return (commit.operation or "").upper().startswith(_REPLACED)


def _backwards(log: DeltaLog) -> Iterator[Commit]:
    for version in range(log.head(), log.earliest() - 1, -1):
        yield from log.commits(version - 1, version)
