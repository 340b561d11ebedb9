"""What is wrong with a change stream, what was asked of it, or those who read it (partitions.md 1.5 and 1.7)."""

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
    """Change Stream not found: {stream}. Create it with CREATE CHANGE STREAM or `lake.create_change_stream`; there are:
    {known}.
    """


class ChangeStreamExists(ChangeStreamError):
    """Duplicate name in schema: change stream {stream} exists already. Use if_not_exists to keep it, or take another
    name.
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
    """Change stream {stream} cannot capture {table} from version {version} on: {problem}. What was captured before can
    still be read. {remedy}
    """


class KeyTwiceInTransaction(ChangeStreamError):
    """Change stream {stream}: version {version} of {table} has {times} {mod_type} of the key {key}. Its key columns
    {columns} do not identify a row. Nothing of the batch was captured. Mend the table, then alter the change stream
    with restart=[{table!r}]: it is watched from its newest version on, and what was committed between is not captured.
    If other columns identify a row, give them as keys along with restart.
    """


class CaptureChanged(ChangeStreamError):
    """Batch {number} of change stream {stream} cannot be closed: {problem}. The store was left as it is."""


class BatchBarred(CaptureChanged):
    """Batch {number} of change stream {stream} was discarded when the stream was altered, and can never come into the
    log. What it would have had comes with a later batch: retry.
    """


class DiscardedBatchCaptured(ChangeStreamError):
    """Batch {number} of change stream {stream} was discarded when the stream was altered, and a capture that was under
    way has put it into the log all the same. It counts; what was opened after it was not captured.
    """


class ConsumerGroupNotFound(ChangeStreamError):
    """Change stream {stream} has no consumer group {group!r}. Create it with `lake.create_consumer_group` or with
    CreateConsumerGroupOperator; those there are: {known}.
    """


class ConsumerGroupExists(ChangeStreamError):
    """Change stream {stream} has a consumer group {group!r} that began at {start}. Reset it to begin elsewhere."""


class ChunkChanged(ChangeStreamError):
    """Chunk {number} of partition {token} of group {group!r} was written ahead as {expected}, and was asked for as
    {found}. Its bounds never change; plan again.
    """


class PartitionsFailed(ChangeStreamError):
    """{failed} of the partitions of change stream {stream} failed for group {group!r}: {tokens}. The first said:
    {error} Their descendants wait; the next run takes them up again.
    """


class TransactionIncomplete(ChangeStreamError):
    """Transaction {transaction} of change stream {stream} has {found} of {expected} records below the low watermark
    {watermark}. Nothing of it was handed out.
    """


class UpdateOfMissingRow(ChangeStreamError):
    """A record updates the row with the key {key}, which {target} does not have, and the record has only what was
    modified. Nothing of its chunk was written. Put the rows of the watched table there first (BackfillTableOperator),
    or let the change stream capture NEW_ROW.
    """
