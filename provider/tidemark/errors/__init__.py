"""The one error tree. The docstring of a class is its message, filled with the facts that it carries as attributes.

TidemarkError
├── NotYetSupported
├── InvalidArgument
├── SqlCompilationError         a statement in the SQL of the source system
├── SourceError                 the table that a stream reads
│   ├── TableNotFound (SourceMoved) · AmbiguousTableName · CatalogTableMoved · NotADeltaTable
│   ├── RowTrackingDisabled · UnsupportedTableFeature · IncompatibleSchemaChange
│   ├── LogIncomplete · CorruptLog · FileNotDescribed · NotAFile
│   ├── VersionVacuumed · VersionNotFound
│   └── ExternalTableNotFound · ExternalTableExists · FilesHaveNoSchema · FileFormatNotInstalled · DataFileChanged
├── StreamError                 the stream itself
│   ├── StreamNotFound · StreamExists · StreamOnStream
│   ├── StreamStale · SourceRecreated · TrackingInterrupted
│   ├── KeyNotUnique · KeyColumnChanged
│   ├── StreamLocked · RebaseRefused · RecoveryRefused · RelocationRefused
│   └── DocumentUnreadable · ImportRefused
├── ChangeStreamError           a change stream, its partitions and its readers
│   ├── ChangeStreamNotFound · ChangeStreamExists · ChangeStreamRefused
│   ├── OutOfRange (PartitionExpired) · Unimplemented · PartitionTokenInvalid (an InvalidArgument)
│   ├── WatchedTableChanged · KeyTwiceInTransaction · TransactionIncomplete
│   ├── CaptureChanged (BatchBarred) · DiscardedBatchCaptured
│   └── ConsumerGroupNotFound · ConsumerGroupExists · ChunkChanged · PartitionsFailed · UpdateOfMissingRow
├── ReplicationError            a database that is replicated, and its objects
│   ├── ReplicationNotFound · ReplicationExists · ReplicationInvalid · ReplicationRefused
│   ├── SourceUnreachable · SourceRefused (SourceLocked) · SourceIsAnother · SourceSetBack · SourceDriverNotInstalled
│   ├── SlotLost · SlotForeign · SlotAhead · SlotBusy · SlotBlocked · EventLogChanged
│   └── ObjectNotFound · ObjectNotReplicable · ObjectRecreated · ObjectFailed
│       BackfillInterrupted (BackfillGaveWay)
│       BackfillNeeded · ObjectsFailed · ValueDoesNotFit · ToastedKey · TargetMovedOn · TargetLost
├── ViewError                   the view that a stream reads
│   └── ViewRefused · ViewTextMissing · ViewNotUnderstood · ViewChanged
├── TargetError                 the table that a statement writes
│   ├── TargetNotFound · TargetNotDelta · TargetDoesNotFit · TargetForgetsTransactions
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
│   └── StorageUnreachable · StorageRefused · DataFileUnreadable
├── StoreError
│   └── StoreUrlInvalid · StoreUnreachable · StoreRefused · StoreBusy · StoreNotMigrated · StoreTooNew
│       StoreOlderThanLake
└── JobError
    └── JobDied · JobLeftNoResult · JobCancelled · JobDeadlineExceeded · JobFailed · JavaNotFound · SparkNotFound
        SparkMasterUnfit · DirectoryNotPrivate · JobFilesUnusable
"""

from __future__ import annotations

from tidemark.errors.change_streams import (
    BatchBarred,
    CaptureChanged,
    ChangeStreamError,
    ChangeStreamExists,
    ChangeStreamNotFound,
    ChangeStreamRefused,
    ChunkChanged,
    ConsumerGroupExists,
    ConsumerGroupNotFound,
    DiscardedBatchCaptured,
    KeyTwiceInTransaction,
    OutOfRange,
    PartitionExpired,
    PartitionsFailed,
    PartitionTokenInvalid,
    TransactionIncomplete,
    Unimplemented,
    UpdateOfMissingRow,
    WatchedTableChanged,
)
from tidemark.errors.external_tables import (
    DataFileChanged,
    ExternalTableExists,
    ExternalTableNotFound,
    FileFormatNotInstalled,
    FilesHaveNoSchema,
)
from tidemark.errors.jobs import (
    ConnectClientNotFound,
    DirectoryNotPrivate,
    DriverJvmNeeded,
    JavaNotFound,
    JobCancelled,
    JobDeadlineExceeded,
    JobDied,
    JobError,
    JobFailed,
    JobFilesUnusable,
    JobLeftNoResult,
    JobMayRunOn,
    LakeNotShared,
    SparkMasterUnfit,
    SparkNotFound,
    SparkServerUnfit,
    SparkServerUnreachable,
    WarmSparkEnded,
    WarmSparkNotStarted,
    from_record,
)
from tidemark.errors.kafka import (
    BrokerError,
    BrokerRefused,
    BrokerUnreachable,
    KafkaClientNotInstalled,
    OffsetOutOfRange,
    TopicNotFound,
    TopicPartitionsChanged,
    TopicRecreated,
)
from tidemark.errors.protocol import (
    CommitRefused,
    Fenced,
    JobsMayBeAlive,
    PlanChanged,
    StatementRefused,
    SubmitRefused,
    Superseded,
    TransactionError,
    TransactionNotFound,
    TransactionOpen,
)
from tidemark.errors.replication import (
    BackfillGaveWay,
    BackfillInterrupted,
    BackfillNeeded,
    EventLogChanged,
    ObjectFailed,
    ObjectNotFound,
    ObjectNotReplicable,
    ObjectRecreated,
    ObjectsFailed,
    ReplicationError,
    ReplicationExists,
    ReplicationInvalid,
    ReplicationNotFound,
    ReplicationRefused,
    SlotAhead,
    SlotBlocked,
    SlotBusy,
    SlotForeign,
    SlotLost,
    SourceDriverNotInstalled,
    SourceIsAnother,
    SourceLocked,
    SourceRefused,
    SourceSetBack,
    SourceUnreachable,
    TargetLost,
    TargetMovedOn,
    ToastedKey,
    ValueDoesNotFit,
)
from tidemark.errors.sources import (
    AmbiguousTableName,
    CatalogTableMoved,
    CorruptLog,
    DataFileUnreadable,
    FileNotDescribed,
    IncompatibleSchemaChange,
    LakeError,
    LogIncomplete,
    NotADeltaTable,
    NotAFile,
    RowTrackingDisabled,
    SourceError,
    SourceMoved,
    StorageRefused,
    StorageUnreachable,
    TableNotFound,
    UnsupportedTableFeature,
    VersionNotFound,
    VersionVacuumed,
)
from tidemark.errors.sql import SqlCompilationError
from tidemark.errors.stores import (
    StoreBusy,
    StoreError,
    StoreNotMigrated,
    StoreOlderThanLake,
    StoreRefused,
    StoreTooNew,
    StoreUnreachable,
    StoreUrlInvalid,
)
from tidemark.errors.streams import (
    DocumentUnreadable,
    ImportRefused,
    KeyColumnChanged,
    KeyNotUnique,
    RebaseRefused,
    RecoveryRefused,
    RelocationRefused,
    SourceRecreated,
    StreamError,
    StreamExists,
    StreamLocked,
    StreamNotFound,
    StreamOnStream,
    StreamStale,
    TrackingInterrupted,
)
from tidemark.errors.targets import (
    AmbiguousMergeKey,
    ConstraintViolated,
    MissingMergeKey,
    QuarantineDoesNotFit,
    SerialReused,
    SplitUnreadable,
    TargetChanged,
    TargetDoesNotFit,
    TargetError,
    TargetForgetsTransactions,
    TargetNotDelta,
    TargetNotFound,
    TargetRewound,
)
from tidemark.errors.tree import InvalidArgument, NotYetSupported, TidemarkError
from tidemark.errors.views import ViewChanged, ViewError, ViewNotUnderstood, ViewRefused, ViewTextMissing

__all__ = [
    "PASSING",
    "AmbiguousMergeKey",
    "AmbiguousTableName",
    "BackfillGaveWay",
    "BackfillInterrupted",
    "BackfillNeeded",
    "BatchBarred",
    "BrokerError",
    "BrokerRefused",
    "BrokerUnreachable",
    "CaptureChanged",
    "CatalogTableMoved",
    "ChangeStreamError",
    "ChangeStreamExists",
    "ChangeStreamNotFound",
    "ChangeStreamRefused",
    "ChunkChanged",
    "CommitRefused",
    "ConnectClientNotFound",
    "ConstraintViolated",
    "ConsumerGroupExists",
    "ConsumerGroupNotFound",
    "CorruptLog",
    "DataFileChanged",
    "DataFileUnreadable",
    "DirectoryNotPrivate",
    "DiscardedBatchCaptured",
    "DocumentUnreadable",
    "DriverJvmNeeded",
    "EventLogChanged",
    "ExternalTableExists",
    "ExternalTableNotFound",
    "Fenced",
    "FileFormatNotInstalled",
    "FileNotDescribed",
    "FilesHaveNoSchema",
    "ImportRefused",
    "IncompatibleSchemaChange",
    "InvalidArgument",
    "JavaNotFound",
    "JobCancelled",
    "JobDeadlineExceeded",
    "JobDied",
    "JobError",
    "JobFailed",
    "JobFilesUnusable",
    "JobLeftNoResult",
    "JobMayRunOn",
    "JobsMayBeAlive",
    "KafkaClientNotInstalled",
    "KeyColumnChanged",
    "KeyNotUnique",
    "KeyTwiceInTransaction",
    "LakeError",
    "LakeNotShared",
    "LogIncomplete",
    "MissingMergeKey",
    "NotADeltaTable",
    "NotAFile",
    "NotYetSupported",
    "ObjectFailed",
    "ObjectNotFound",
    "ObjectNotReplicable",
    "ObjectRecreated",
    "ObjectsFailed",
    "OffsetOutOfRange",
    "OutOfRange",
    "PartitionExpired",
    "PartitionTokenInvalid",
    "PartitionsFailed",
    "PlanChanged",
    "QuarantineDoesNotFit",
    "RebaseRefused",
    "RecoveryRefused",
    "RelocationRefused",
    "ReplicationError",
    "ReplicationExists",
    "ReplicationInvalid",
    "ReplicationNotFound",
    "ReplicationRefused",
    "RowTrackingDisabled",
    "SerialReused",
    "SlotAhead",
    "SlotBlocked",
    "SlotBusy",
    "SlotForeign",
    "SlotLost",
    "SourceDriverNotInstalled",
    "SourceError",
    "SourceIsAnother",
    "SourceLocked",
    "SourceMoved",
    "SourceRecreated",
    "SourceRefused",
    "SourceSetBack",
    "SourceUnreachable",
    "SparkMasterUnfit",
    "SparkNotFound",
    "SparkServerUnfit",
    "SparkServerUnreachable",
    "SplitUnreadable",
    "SqlCompilationError",
    "StatementRefused",
    "StorageRefused",
    "StorageUnreachable",
    "StoreBusy",
    "StoreError",
    "StoreNotMigrated",
    "StoreOlderThanLake",
    "StoreRefused",
    "StoreTooNew",
    "StoreUnreachable",
    "StoreUrlInvalid",
    "StreamError",
    "StreamExists",
    "StreamLocked",
    "StreamNotFound",
    "StreamOnStream",
    "StreamStale",
    "SubmitRefused",
    "Superseded",
    "TableNotFound",
    "TargetChanged",
    "TargetDoesNotFit",
    "TargetError",
    "TargetForgetsTransactions",
    "TargetLost",
    "TargetMovedOn",
    "TargetNotDelta",
    "TargetNotFound",
    "TargetRewound",
    "TidemarkError",
    "ToastedKey",
    "TopicNotFound",
    "TopicPartitionsChanged",
    "TopicRecreated",
    "TrackingInterrupted",
    "TransactionError",
    "TransactionIncomplete",
    "TransactionNotFound",
    "TransactionOpen",
    "Unimplemented",
    "UnsupportedTableFeature",
    "UpdateOfMissingRow",
    "ValueDoesNotFit",
    "VersionNotFound",
    "VersionVacuumed",
    "ViewChanged",
    "ViewError",
    "ViewNotUnderstood",
    "ViewRefused",
    "ViewTextMissing",
    "WarmSparkEnded",
    "WarmSparkNotStarted",
    "WatchedTableChanged",
    "from_record",
]

PASSING = (StorageUnreachable, StoreUnreachable, StoreBusy, BrokerUnreachable)
"""Errors that may be over in a minute. A caller that waits anyway asks again."""
