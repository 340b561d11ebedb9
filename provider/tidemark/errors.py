"""The one error tree. The docstring of a class is its message, filled with the facts that it carries as attributes.

TidemarkError
├── NotYetSupported
├── InvalidArgument
├── SourceError                 the table that a stream reads
│   ├── TableNotFound · NotADeltaTable · SourceMoved
│   ├── RowTrackingDisabled · UnsupportedTableFeature · IncompatibleSchemaChange
│   ├── LogIncomplete · UnsupportedCheckpoint · CorruptLog
│   └── VersionVacuumed · VersionNotFound
├── StreamError                 the stream itself
│   ├── StreamNotFound · StreamExists · StreamOnStream
│   ├── StreamStale · SourceRecreated · TrackingInterrupted
│   └── StreamLocked
├── TargetError                 the table that a statement writes
│   ├── TargetNotFound · TargetNotDelta · TargetDoesNotFit · TargetForgetsTransactions
│   ├── MissingMergeKey · AmbiguousMergeKey
│   └── TargetChanged · TargetRewound · SerialReused
├── TransactionError            the protocol
│   ├── PlanChanged · Superseded · Fenced · SubmitRefused · CommitRefused
│   ├── TransactionNotFound · TransactionOpen · JobsMayBeAlive
│   └── StatementRefused
├── LakeError                   the storage that tables lie on
│   └── StorageUnreachable · StorageRefused · DataFileUnreadable
├── StoreError
│   └── StoreUnreachable · StoreNotMigrated
└── JobError
    └── JobDied · JobLeftNoResult · JobCancelled · JobDeadlineExceeded · JobFailed · JavaNotFound · SparkNotFound
"""

from __future__ import annotations

from typing import Any

from tidemark.model.codec import to_plain
from tidemark.model.jobs import ErrorRecord


class TidemarkError(Exception):
    """{message}"""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)
        super().__init__(_message(type(self), facts))

    def to_record(self) -> ErrorRecord:
        """The form in which a job hands the error to the worker."""
        return ErrorRecord(error=type(self).__name__, facts=to_plain(self.facts), message=str(self))


def _message(kind: type[TidemarkError], facts: dict[str, Any]) -> str:
    text = " ".join((kind.__doc__ or "").split())
    return text.format_map({name: value for name, value in facts.items()})


def from_record(record: ErrorRecord) -> TidemarkError:
    """The error that `to_record` wrote; a class that this release does not know becomes `JobFailed`."""
    for kind in _all_errors(TidemarkError):
        if kind.__name__ == record.error:
            return kind(**record.facts)
    return JobFailed(error=record.error, message=record.message)


def _all_errors(root: type[TidemarkError]) -> list[type[TidemarkError]]:
    return [root, *(found for child in root.__subclasses__() for found in _all_errors(child))]


class NotYetSupported(TidemarkError):
    """{feature} is not supported yet. {instead}"""


class InvalidArgument(TidemarkError):
    """{argument}={value!r}: {problem}"""


# --- the table that a stream reads -----------------------------------------------------------------------------------


class SourceError(TidemarkError):
    """{message}"""


class TableNotFound(SourceError):
    """There is no table at {path}: the directory does not exist or holds no _delta_log. Check the name or the lake
    root.
    """


class NotADeltaTable(SourceError):
    """{path} exists but is not a Delta table ({problem}). Convert it with CONVERT TO DELTA, or name another table."""


class SourceMoved(SourceError):
    """The table {name} no longer lies at {old_path}; it is now at {path}."""


class RowTrackingDisabled(SourceError):
    """Row tracking is off on {table}, so its rows have no stable ids and no stream can read it. Turn it on with
    ALTER TABLE {sql_name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true'), or create the stream with
    enable_row_tracking=True. Either makes up to three commits on the live table and upgrades its protocol: writers that
    do not support the rowTracking feature (delta-rs up to 1.6, Delta before 3.2) can no longer write to it.
    """


class UnsupportedTableFeature(SourceError):
    """{table} uses the Delta feature {feature!r}, which streams cannot read yet. {instead}"""


class IncompatibleSchemaChange(SourceError):
    """Between versions {start} and {end} of {table} the schema changed in a way that old rows cannot follow: {problem}.
    The stream is not stale: read it up to the version before the change with max_commits, then recreate it.
    """


class LogIncomplete(SourceError):
    """The log of {path} lacks version {version}, which is needed to read on from version {start}: log cleanup has
    removed it. The changes since then can no longer be read.
    """


class UnsupportedCheckpoint(SourceError):
    """The checkpoint of version {version} of {path} has the form {form!r}, which cannot be read yet."""


class CorruptLog(SourceError):
    """{file} cannot be read as part of a Delta log: {problem}"""


class VersionVacuumed(SourceError):
    """Data files of {table} that the range ({start}, {end}] needs are gone ({count}, the first {first}): VACUUM has
    removed them. The changes in this range are lost for this stream; recreate it to go on from now.
    """


class VersionNotFound(SourceError):
    """{table} has no version {version}; its versions go from {earliest} to {latest}."""


# --- the storage that tables lie on ----------------------------------------------------------------------------------


class LakeError(TidemarkError):
    """{message}"""


class StorageUnreachable(LakeError):
    """{place} could not be had from its storage: {problem}. Nothing can be said of the table; trying again may help. If
    it does not, check the storage options of the connection (endpoint, region) and the network.
    """


class StorageRefused(LakeError):
    """The storage refused {place}: {problem}. Check the keys in the storage options of the connection, and that they
    may list, read and write there.
    """


class DataFileUnreadable(LakeError):
    """Spark could not read {file}, or a deletion vector of it: {problem}. The statement that reads it wrote nothing. If
    trying again does not help, the file is damaged or gone: restore it, or the table to a version without it.
    """


# --- the stream itself -----------------------------------------------------------------------------------------------


class StreamError(TidemarkError):
    """{message}"""


class StreamNotFound(StreamError):
    """Stream {stream!r} does not exist. Create it, or list the streams with `airflow tidemark streams list`."""


class StreamExists(StreamError):
    """Stream {stream!r} already exists on {source}. Use if_not_exists to keep it and its offset, or or_replace to start
    a new one at the current version (its place is lost).
    """


class StreamOnStream(StreamError):
    """{source!r} is a stream, and a stream on a stream is not possible. Name the table that it reads: {table}."""


class StreamStale(StreamError):
    """The stream {stream!r} has become stale: its offset, version {version}, lies outside the retained history of
    {table} ({reason}). Unread changes can no longer be had; recreate the stream to go on from now.
    """


class SourceRecreated(StreamError):
    """Base table {table!r} dropped, cannot read from stream {stream!r}: the table at {path} now has the id {found}, the
    stream was created on {expected}. A new table with an old name is another table (R91); recreate the stream.
    """


class TrackingInterrupted(StreamError):
    """Change tracking is not enabled or has been missing for the time range requested on table {table!r} (stream
    {stream!r}): {problem}. Recreate the stream.
    """


class StreamLocked(StreamError):
    """Stream {stream!r} is held by the open transaction {holder} until {until}. It is free when that
    ends; try again.
    """


# --- the table that a statement writes --------------------------------------------------------------------------------


class TargetError(TidemarkError):
    """{message}"""


class TargetNotFound(TargetError):
    """The target {target} does not exist. Create it as a Delta table first."""


class TargetNotDelta(TargetError):
    """The target {target} is not a Delta table ({problem}); only Delta remembers which transactions it has had."""


class TargetDoesNotFit(TargetError):
    """The stream does not fit the target {target}: {problem}."""


class TargetForgetsTransactions(TargetError):
    """The target {target} forgets its transactions after {retention} (delta.setTransactionRetentionDuration), sooner
    than the {needed} that a window may stay pinned, so a late writer could write twice. Raise the property or unset
    it.
    """


class MissingMergeKey(TargetError):
    """A merge into {target} needs key columns that both sides have: {problem}."""


class AmbiguousMergeKey(TargetError):
    """The merge key ({keys}) is not unique in the changes for {target}: {duplicates} keys stand for more than one row,
    for example {example}. Nothing was written. Choose keys that identify a row.
    """


class TargetChanged(TargetError):
    """The target {target} was recreated while its window was pinned: it had the id {expected}, now {found}. Whether it
    has the changes cannot be known from its log; `airflow tidemark streams redo` lets the next run write the window
    into the new table.
    """


class TargetRewound(TargetError):
    """The target {target} was rewound (RESTORE or replaced) below the write of transaction {app_id} version
    {txn_version}: the changes are gone from it. `airflow tidemark streams redo` lets the next run
    write the window again.
    """


class SerialReused(TargetError):
    """The log of {target} holds transaction {app_id} at version {found}, but not with the mark of version {txn_version}
    of this window: another control store gave out the number, or this one was restored from a backup. Nothing of this
    window was written there; recreate the stream to get a new identity.
    """


# --- the protocol ----------------------------------------------------------------------------------------------------


class TransactionError(TidemarkError):
    """{message}"""


class PlanChanged(TransactionError):
    """Transaction {key} was begun with another plan ({problem}). Its window may be half written under the stored plan;
    put the old plan back and retry, or free its streams with `airflow tidemark streams release`.
    """


class Superseded(TransactionError):
    """Transaction {key} is no longer in these hands: {by} took its place after the lease had run out. Its window is not
    lost; whoever holds it finishes it.
    """


class Fenced(TransactionError):
    """Statement {number} of transaction {key} was fenced off at {target}: a later decision forbids this write."""


class SubmitRefused(TransactionError):
    """Transaction {key} no longer holds its window, so no job was started: {problem}."""


class CommitRefused(TransactionError):
    """Transaction {key} cannot commit: {problem}. No offset has moved."""


class TransactionNotFound(TransactionError):
    """There is no transaction {key}."""


class TransactionOpen(TransactionError):
    """Stream {stream!r} cannot be {action} while transaction {key} is open on it. Finish that first, or free the
    stream with `airflow tidemark streams release`.
    """


class JobsMayBeAlive(TransactionError):
    """A job of transaction {key} may still be running until {until}; nothing can be released before."""


class StatementRefused(TransactionError):
    """The statement cannot be part of a transaction: {problem}. Statement: {sql}"""


# --- the control store and jobs ---------------------------------------------------------------------------------------


class StoreError(TidemarkError):
    """{message}"""


class StoreUnreachable(StoreError):
    """The control store {url} cannot be reached: {problem}"""


class StoreNotMigrated(StoreError):
    """The control store {url} is at revision {found}, this release needs {needed}. Run
    `airflow tidemark db migrate`.
    """


class JobError(TidemarkError):
    """{message}"""


class JobDied(JobError):
    """The Spark job for {key} ended with exit code {exit_code} and left no result. Last lines: {tail}"""


class JobLeftNoResult(JobError):
    """The Spark job for {key} ended well but wrote no result to {result_uri}."""


class JobCancelled(JobError):
    """The Spark job for {key} was cancelled."""


class JobDeadlineExceeded(JobError):
    """The Spark job for {key} stopped itself at its deadline {deadline}."""


class JobFailed(JobError):
    """The Spark job failed with {error}: {message}"""


class JavaNotFound(JobError):
    """Spark needs Java 17, found: {found}. Install it, for example with: {command}"""


class SparkNotFound(JobError):
    """There is no spark-submit on the PATH of this worker. Install it, for example with: {command}"""


class ConnectClientNotFound(JobError):
    """There is no Spark Connect client on this worker: {missing} is missing. Install it, for example with: {command}"""


class SparkServerUnreachable(JobError):
    """No Spark Connect server answers at {server}: {problem}. Nothing was written. See that it runs, and that host,
    port, token and use_ssl of the Spark connection are right.
    """


class SparkServerUnfit(JobError):
    """The Spark Connect server at {server} cannot do the work: {problem}."""


class LakeNotShared(JobError):
    """Worker and Spark do not see the same lake: {problem}. Let both reach it by one name: the same directory mounted
    at the same path, or one object store of which both have the credentials.
    """


class JobMayRunOn(TidemarkError):
    """The job for {key} is gone, but the Spark Connect server at {server} does not say that its work has ended. It
    counts as running until {deadline}. Trying again is safe: each statement still happens once.
    """
