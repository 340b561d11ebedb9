"""Errors of change streams, of requests to them, and of their readers."""

from __future__ import annotations

from tidemark.errors.tree import InvalidArgument, TidemarkError

__all__ = [
    "BatchBarred",
    "CaptureChanged",
    "ChangeStreamError",
    "ChangeStreamExists",
    "ChangeStreamNotFound",
    "ChangeStreamRefused",
    "ChunkChanged",
    "ConsumerGroupExists",
    "ConsumerGroupNotFound",
    "DiscardedBatchCaptured",
    "KeyTwiceInTransaction",
    "OutOfRange",
    "PartitionExpired",
    "PartitionTokenInvalid",
    "PartitionsFailed",
    "TransactionIncomplete",
    "Unimplemented",
    "UpdateOfMissingRow",
    "WatchedTableChanged",
]


class ChangeStreamError(TidemarkError):
    """{message}"""


class ChangeStreamNotFound(ChangeStreamError):
    """Change Stream not found: {stream}. Create it with CREATE CHANGE STREAM or `lake.create_change_stream`. These
    exist: {known}.
    """


class ChangeStreamExists(ChangeStreamError):
    """Duplicate name in schema: change stream {stream} exists already. Use if_not_exists to keep it, or choose
    another name.
    """


class ChangeStreamRefused(ChangeStreamError):
    """Change stream {stream}: {problem}"""


class OutOfRange(ChangeStreamError):
    """{argument}={value!r}: {problem}"""


class PartitionExpired(OutOfRange):
    """{argument}={value!r}: This partition is no longer valid: {problem}"""


class Unimplemented(ChangeStreamError):
    """{argument}={value!r}: {problem}"""


class PartitionTokenInvalid(InvalidArgument):
    """{argument}={value!r}: partition_token is invalid: {problem}"""


class WatchedTableChanged(ChangeStreamError):
    """Change stream {stream} cannot capture {table} from version {version} on: {problem}. Earlier records can still be
    read. {remedy}
    """


class KeyTwiceInTransaction(ChangeStreamError):
    """Change stream {stream}: version {version} of {table} has {times} {mod_type} of the key {key}. Its key columns
    {columns} do not identify a row. Nothing of the batch was captured. Repair the table, then alter the change stream
    with restart=[{table!r}]. It is then watched from its newest version on, and commits between are not captured. If
    other columns identify a row, give them as keys together with restart.
    """


class CaptureChanged(ChangeStreamError):
    """Batch {number} of change stream {stream} cannot be closed: {problem}. The store was not changed. Capture again.
    If it fails once more, ask whether the control store was restored from a backup.
    """


class BatchBarred(CaptureChanged):
    """Batch {number} of change stream {stream} was discarded when the stream was altered, and can never enter the log.
    A later batch has its records: retry.
    """


class DiscardedBatchCaptured(ChangeStreamError):
    """Batch {number} of change stream {stream} was discarded when the stream was altered. But a running capture had
    already written it to the log. It counts. The batch that was opened after it was not captured. Capture again.
    """


class ConsumerGroupNotFound(ChangeStreamError):
    """Change stream {stream} has no consumer group {group!r}. Create it with `lake.create_consumer_group` or
    CreateConsumerGroupOperator. These exist: {known}.
    """


class ConsumerGroupExists(ChangeStreamError):
    """Change stream {stream} has a consumer group {group!r} that began at {start}. To let it begin elsewhere,
    run `airflow tidemark consumer-groups reset`, or use `lake.reset_consumer_group`.
    """


class ChunkChanged(ChangeStreamError):
    """Chunk {number} of partition {token} of group {group!r} was stored as {expected}, and requested as {found}. Its
    bounds never change. Plan the wave again.
    """


class PartitionsFailed(ChangeStreamError):
    """{failed} of the partitions of change stream {stream} failed for group {group!r}: {tokens}. The first error:
    {error} Their descendants wait. The next run reads them again.
    """


class TransactionIncomplete(ChangeStreamError):
    """Transaction {transaction} of change stream {stream} has {found} of {expected} records below the low watermark
    {watermark}: rows of the log were deleted. None of them was returned. Read from a time after this transaction.
    """


class UpdateOfMissingRow(ChangeStreamError):
    """A record updates the row with the key {key}, which {target} does not have, and the record has only modified
    columns. Nothing of its chunk was written. Backfill the target first (BackfillTableOperator), or let the change
    stream capture NEW_ROW.
    """
