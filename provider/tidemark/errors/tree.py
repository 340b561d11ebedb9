"""The root of the error tree. The docstring of each class is its message.

```text
TidemarkError
├── NotYetSupported
├── InvalidArgument (CursorInvalid)
├── ConnectionUnreadable        a connection of Airflow that is perhaps missing
├── SqlCompilationError         a statement in the SQL of the source system
├── QueryNotReusable            a query whose answer is to be kept
├── EventLogError               the event log of a Spark application
│   └── EventLogNotFound · EventLogUnreadable
├── SourceError                 the table that a stream reads
│   ├── TableNotFound (SourceMoved, SourceCopied) · AmbiguousTableName · CatalogTableMoved · NotADeltaTable
│   ├── RowTrackingDisabled · UnsupportedTableFeature · IncompatibleSchemaChange
│   ├── LogIncomplete · CorruptLog · FileNotDescribed · RowsRenumbered · NotAFile
│   ├── VersionVacuumed · VersionNotFound
│   └── ExternalTableNotFound · ExternalTableExists · FilesHaveNoSchema · FileFormatNotInstalled · DataFileChanged
├── StreamError                 the stream itself
│   ├── StreamNotFound · StreamExists · StreamOnStream
│   ├── StreamStale (PastWindowLost) · SourceRecreated · TrackingInterrupted
│   ├── KeyNotUnique · KeyColumnChanged
│   ├── StreamLocked · RebaseRefused · RecoveryRefused · RelocationRefused
│   └── DocumentUnreadable · ImportRefused
├── ChangeStreamError           a change stream, its partitions and its readers
│   ├── ChangeStreamNotFound · ChangeStreamExists · ChangeStreamRefused
│   ├── OutOfRange (PartitionExpired) · Unimplemented · PartitionTokenInvalid (an InvalidArgument)
│   ├── WatchedTableChanged · KeyTwiceInTransaction · TransactionIncomplete
│   ├── CaptureChanged (BatchBarred) · DiscardedBatchCaptured
│   └── ConsumerGroupNotFound · ConsumerGroupExists · ChunkChanged · PartitionsFailed · UpdateOfMissingRow
├── ChannelError                a channel, its rows and its table
│   ├── TableNotSupported · ChannelNotFound · ChannelInvalid · ChannelClosed · ChannelTokenLost
│   ├── ChannelHasUncommittedRows · RowsRefused · RowsNotCommitted · TokenOutOfOrder
│   ├── BodyUnreadable · BodyTooLarge · ContinuationTokenStale
│   ├── IngestBusy · IngestPaused · IngestUnauthenticated · IngestForbidden · TokensFileUnreadable
│   └── IngestUnavailable · CommitConflict · KernelFailed · ChangeNotCommitted · TablesNotKept
├── PipeError                   a load of files, its stage, file format or pipe
│   ├── StageNotFound · StageExists · StageLocationMissing · FileFormatNotFound · FileFormatExists
│   ├── PipeNotFound · PipeExists · PipePaused · PipeStale · PipeStalled
│   ├── PipeForbidden · PipeBusy · FilesNotQueued
│   ├── CopyRefused · CopyAborted · BatchMissing · FilesNotFound
│   └── NotificationsUnreachable · NotificationsNotInstalled
├── KeptViewError               a materialized view or a dynamic table
│   ├── KeptViewNotFound · KeptViewExists · KeptViewRefused · KeptViewSuspended
│   └── KeptViewOutdated · KeptViewNotReady · RefreshesFailed · StreamOfAView
├── ClusteringError             a table that keeps to a clustering key
│   └── ClusteringKeyMissing · ClusteringKeyRefused · ClusteredTableRecreated · ReclusteringsFailed
├── SearchError                 the search optimization of a table
│   └── SearchNotFound · SearchRefused · SearchChanged
├── ObjectError                 an act of a person on an object of any kind
│   └── ObjectGone · ObjectChanged · ActNotOffered · ActTooLate · ActUnfinished · ActFieldsInvalid
├── ReplicationError            a database that is replicated, and its objects
│   ├── ReplicationNotFound · ReplicationExists · ReplicationInvalid · ReplicationRefused
│   ├── SourceUnreachable · SourceRefused (SourceLocked, EnvelopeInvalid, EnvelopesOutOfOrder,
│   │   EventFileInvalid, EventFilesOutOfOrder)
│   ├── SourceIsAnother · SourceSetBack · TransactionsMissing · SourceDriverNotInstalled
│   ├── SlotLost (LogPurged) · SlotForeign · SlotAhead · SlotBusy · SlotBlocked · EventLogChanged
│   ├── EventFilesIncomplete · EventUnreadable
│   └── ObjectNotFound · ObjectNotReplicable · ObjectRecreated · ObjectFailed
│       BackfillInterrupted (BackfillGaveWay)
│       BackfillNeeded · ObjectsFailed · ValueDoesNotFit · ToastedKey · TargetMovedOn · TargetLost
├── ViewError                   the view that a stream reads
│   └── ViewRefused · ViewTextMissing · ViewNotUnderstood · ViewChanged
├── TargetError                 the table that a statement writes
│   ├── TargetNotFound · TargetNotDelta · TargetIsKept · TargetDoesNotFit · TargetForgetsTransactions
│   ├── MissingMergeKey · AmbiguousMergeKey · ConstraintViolated · QuarantineDoesNotFit · SplitUnreadable
│   └── TargetChanged · TargetRewound · SerialReused
├── TransactionError            the protocol
│   ├── PlanChanged · Superseded · Fenced · SubmitRefused · CommitRefused
│   ├── TransactionNotFound · TransactionOpen · JobsMayBeAlive
│   └── StatementRefused
├── BrokerError                 a Kafka topic and its brokers
│   ├── BrokerUnreachable · BrokerRefused · KafkaClientNotInstalled
│   └── TopicNotFound · TopicRecreated · TopicPartitionsChanged · OffsetOutOfRange
├── LakeError                   the storage of the tables
│   └── StorageUnreachable · StorageRefused · CommitsMayBeLost · DataFileUnreadable
├── StoreError
│   └── StoreUrlInvalid · StoreUnreachable · StoreRefused · StoreBusy · StoreNotMigrated · StoreTooNew
│       StoreOlderThanLake
├── ClusterError                a cluster that runs drivers
│   └── ClusterUnreachable · ClusterRefused · ApplicationUnknown · DriverMayRunOn (DriverEndUnproven)
└── JobError
    └── JobDied · JobLeftNoResult · JobCancelled · JobDeadlineExceeded · JobFailed · JavaNotFound · SparkNotFound
        SparkMasterUnfit · DirectoryNotPrivate · JobFilesUnusable · DriverDied
```
"""

from __future__ import annotations

from typing import Any

from tidemark.model.codec import to_plain
from tidemark.model.jobs import ErrorRecord

__all__ = ["ConnectionUnreadable", "CursorInvalid", "InvalidArgument", "NotYetSupported", "TidemarkError"]

_PLACES = frozenset({"file", "first", "location", "old_path", "path", "place", "table"})  # facts that others name


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
    return text.format_map(
        {name: _in_one_line(value) if name in _PLACES else value for name, value in facts.items()}
    ).strip()


def _in_one_line(value: Any) -> Any:
    """A name as one line of a log can show it. Newlines and bytes that are no UTF-8 are escaped."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in value)


class NotYetSupported(TidemarkError):
    """{feature} is not supported yet. {instead}"""


class InvalidArgument(TidemarkError):
    """{argument}={value!r}: {problem}"""


class CursorInvalid(InvalidArgument):
    """cursor={cursor!r}: this list has not given it in this order. Begin without a cursor"""


class ConnectionUnreadable(TidemarkError):
    """The connection {connection!r} cannot be read, and it is unknown whether it exists: the secrets backend
    {backend} failed with {problem}. A retry asks again; if it persists, repair the backend or the connection.
    """
