"""Errors of replications, of their sources and of their objects."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "BackfillGaveWay",
    "BackfillInterrupted",
    "BackfillNeeded",
    "EnvelopeInvalid",
    "EnvelopesOutOfOrder",
    "EventFileInvalid",
    "EventFilesIncomplete",
    "EventFilesOutOfOrder",
    "EventLogChanged",
    "EventUnreadable",
    "LogPurged",
    "ObjectFailed",
    "ObjectNotFound",
    "ObjectNotReplicable",
    "ObjectRecreated",
    "ObjectsFailed",
    "ReplicationError",
    "ReplicationExists",
    "ReplicationInvalid",
    "ReplicationNotFound",
    "ReplicationRefused",
    "SlotAhead",
    "SlotBlocked",
    "SlotBusy",
    "SlotForeign",
    "SlotLost",
    "SourceDriverNotInstalled",
    "SourceIsAnother",
    "SourceLocked",
    "SourceRefused",
    "SourceSetBack",
    "SourceUnreachable",
    "TargetLost",
    "TargetMovedOn",
    "ToastedKey",
    "TransactionsMissing",
    "ValueDoesNotFit",
]


class ReplicationError(TidemarkError):
    """{message}"""


class ReplicationNotFound(ReplicationError):
    """Replication {replication!r} does not exist. Create it with CreateReplicationOperator. These exist: {known}."""


class ReplicationExists(ReplicationError):
    """Replication {replication!r} exists already. Use if_not_exists to keep it, or choose another name."""


class ReplicationRefused(ReplicationError):
    """Replication {replication}: {problem}"""


class ReplicationInvalid(ReplicationError):
    """Replication {replication} cannot start, and nothing was created. Correct these problems in the source or in the
    selection, then prepare it again: {problems}
    """


class ObjectNotFound(ReplicationError):
    """Replication {replication} has no object {object!r}. It has: {known}. Name one of them as schema.table."""


class ObjectNotReplicable(ReplicationError):
    """{object} cannot be replicated: {problem}. {remedy}"""


class BackfillNeeded(ReplicationError):
    """Objects of replication {replication} get no more changes until they are backfilled: {objects}. Request
    backfills with RequestBackfillOperator.
    """


class ObjectRecreated(ReplicationError):
    """{object} was dropped in the source and recreated. Its target was not changed. Backfill the object to continue
    with the new table.
    """


class ObjectFailed(ReplicationError):
    """{object}: {problem}. Its target has all changes before {position}. {remedy}"""


class ObjectsFailed(ReplicationError):
    """Objects of replication {replication} failed: {objects}. Correct the causes. The next run tries them again, in
    tasks of their own.
    """


class SourceUnreachable(ReplicationError):
    """{source} cannot be reached: {problem}. Nothing was lost. The next run continues. If it fails again, check host,
    port and password of the connection, and that the source runs.
    """


class SourceRefused(ReplicationError):
    """{source} refused {what}: {problem}. {remedy}"""


class SourceLocked(SourceRefused):
    """{source}: another session holds a lock on {what}: {problem}. Nothing was changed, and no session still waits
    behind this one. Try again. {remedy}
    """


class EnvelopeInvalid(SourceRefused):
    """{place}: {problem}. Nothing of this batch was written. {remedy}"""


class EnvelopesOutOfOrder(SourceRefused):
    """{place}: {problem}. Its events were not captured. {remedy}"""


class EventFileInvalid(SourceRefused):
    """{place}: {problem}. Nothing of this batch was written. {remedy}"""


class EventFilesOutOfOrder(SourceRefused):
    """{place}: {problem}. Its events were not captured. {remedy}"""


class SourceDriverNotInstalled(ReplicationError):
    """Reading from {kind} needs {package}, which is missing. Add it: {command}"""


class SourceIsAnother(ReplicationError):
    """{source} is another database cluster (system identifier {found}) than the one that was replicated ({expected}).
    Its positions mean nothing here. Point the connection at the old cluster, or recover the replication from an
    explicit position of the new one.
    """


class SourceSetBack(ReplicationError):
    """{source} was set back: its log ends at {found}, and was captured up to {expected}. A restore from a backup does
    this, or a failover to a server that was behind. Events after {found} may no longer exist in the source, and their
    positions are used again. Recover the replication from an explicit position and backfill its objects.
    """


class TransactionsMissing(ReplicationError):
    """{source} is another server than the one that was replicated, and its log lacks transactions that were captured:
    {gtids}. Nothing was captured from it. A replica that is behind applies them, and the next run continues. If a
    failover has lost them, recover the replication from an explicit position of this server and backfill its objects.
    """


class SlotLost(ReplicationError):
    """Replication slot {slot} {problem}. Commits after {position} that were not captured can no longer be read. Recover
    the replication from an explicit position and backfill its objects.
    """


class LogPurged(SlotLost):
    """{source} {problem}. Commits after {position} that were not captured can no longer be read. Recover the
    replication from an explicit position and backfill its objects.
    """


class SlotForeign(ReplicationError):
    """Replication slot {slot} is not Tidemark's: {problem}. Drop it if nobody needs it: {remedy}"""


class SlotAhead(ReplicationError):
    """Replication slot {slot} was moved to {found} by someone else, but the event log ends at {expected}. Changes
    between these positions are lost. Recover the replication from an explicit position and backfill its objects.
    """


class SlotBusy(ReplicationError):
    """Replication slot {slot} is read by process {pid} of the source. Another capture is running. Wait for it, or end
    that session: SELECT pg_terminate_backend({pid})
    """


class SlotBlocked(ReplicationError):
    """Slot {slot} could not be created in {seconds} seconds: it waits for open transactions: {blockers}. Wait for
    their end, or end them: {remedy}
    """


class BackfillInterrupted(ReplicationError):
    """The backfill of {object} was interrupted: {problem}. The target was not changed. The next backfill starts from
    the beginning.
    """


class BackfillGaveWay(BackfillInterrupted):
    """The backfill of {object} gave way to other sessions of the source: {problem}. The target was not changed. The
    next backfill starts from the beginning.
    """


class EventLogChanged(ReplicationError):
    """The event log {event_log} of replication {replication} {problem}. Nothing was written. Restore event log and
    control store to the same time, or drop the replication and create it again.
    """


class EventFilesIncomplete(ReplicationError):
    """Event files of replication {replication} in {target}: {problem}. {remedy}"""


class EventUnreadable(ReplicationError):
    """An event of a file cannot be read: {problem}. Its file is damaged, or not in Datastream's form. Write the whole
    file again in that form.
    """


class TargetLost(ReplicationError):
    """The target {target} {problem}. {remedy}"""


class TargetMovedOn(ReplicationError):
    """Write {found} of the object has written {target}. Write {number} came too late and wrote nothing. The newer write
    counts, and you need not repeat this one.
    """


class ValueDoesNotFit(ReplicationError):
    """{object}: the value {value!r} of column {column} does not fit {type}, at {position}. Correct it in the source and
    backfill the object, or let the replication write NULL for such values (invalid_values="null").
    """


class ToastedKey(ReplicationError):
    """{object}: at {position} the log has an update without the row's key, since the key is stored out of line (TOAST).
    Run ALTER TABLE {object} REPLICA IDENTITY FULL in the source, then backfill the object.
    """
