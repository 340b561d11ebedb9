"""Which errors a retry cannot help: they fail the task at once, whatever `retries` says."""

from __future__ import annotations

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from tidemark import errors

__all__ = ["PERMANENT", "retry_policy"]

PERMANENT: tuple[type[errors.TidemarkError], ...] = (
    errors.NotYetSupported,
    errors.InvalidArgument,
    errors.NotADeltaTable,
    errors.CorruptLog,
    errors.FileNotDescribed,
    errors.RowTrackingDisabled,
    errors.UnsupportedTableFeature,
    errors.IncompatibleSchemaChange,
    errors.VersionVacuumed,
    errors.ExternalTableNotFound,
    errors.ExternalTableExists,
    errors.FilesHaveNoSchema,
    errors.FileFormatNotInstalled,
    errors.DataFileChanged,
    errors.StreamExists,
    errors.StreamOnStream,
    errors.StreamStale,
    errors.RebaseRefused,
    errors.SourceRecreated,
    errors.TrackingInterrupted,
    errors.TargetNotDelta,
    errors.TargetDoesNotFit,
    errors.TargetForgetsTransactions,
    errors.TargetChanged,
    errors.TargetRewound,
    errors.MissingMergeKey,
    errors.AmbiguousMergeKey,
    errors.QuarantineDoesNotFit,
    errors.SplitUnreadable,
    errors.PlanChanged,
    errors.StatementRefused,
    errors.ChangeStreamExists,
    errors.ChangeStreamRefused,
    errors.OutOfRange,
    errors.Unimplemented,
    errors.WatchedTableChanged,
    errors.KeyTwiceInTransaction,
    errors.TransactionIncomplete,
    errors.ConsumerGroupExists,
    errors.ChunkChanged,
    errors.ReplicationExists,
    errors.ReplicationRefused,
    errors.ReplicationInvalid,
    errors.ObjectNotFound,
    errors.ObjectNotReplicable,
    errors.ObjectRecreated,
    errors.SlotLost,
    errors.SlotForeign,
    errors.SlotAhead,
    errors.SourceIsAnother,
    errors.TargetLost,
    errors.SourceSetBack,
    errors.SourceDriverNotInstalled,
    errors.EventLogChanged,
    errors.ToastedKey,
    errors.ValueDoesNotFit,
    errors.StoreUrlInvalid,
    errors.StoreNotMigrated,
    errors.StoreTooNew,
    errors.JavaNotFound,
    errors.SparkNotFound,
    errors.ConnectClientNotFound,
    errors.SparkServerUnfit,
    errors.SparkMasterUnfit,
)


def retry_policy() -> ExceptionRetryPolicy:
    """Fails at once for what only a person can mend; a lock, a dead job or an unreachable store is tried again."""
    names: list[type[BaseException] | str] = [f"{kind.__module__}.{kind.__qualname__}" for kind in PERMANENT]
    reason = "Trying again cannot help; see the message."
    return ExceptionRetryPolicy([RetryRule(exception=names, action=RetryAction.FAIL, reason=reason)])
