"""What is wrong with a replication, its source, or one of its objects."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "BackfillGaveWay",
    "BackfillInterrupted",
    "BackfillNeeded",
    "EventLogChanged",
    "ObjectFailed",
    "ObjectNotFound",
    "ObjectNotReplicable",
    "ObjectRecreated",
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
    "ValueDoesNotFit",
]


class ReplicationError(TidemarkError):
    """{message}"""


class ReplicationNotFound(ReplicationError):
    """There is no replication {replication!r}. Create it with CreateReplicationOperator; those there are: {known}."""


class ReplicationExists(ReplicationError):
    """There is a replication {replication!r} already. Use if_not_exists to keep it, or take another name."""


class ReplicationRefused(ReplicationError):
    """Replication {replication}: {problem}"""


class ReplicationInvalid(ReplicationError):
    """Replication {replication} cannot start: {problems}"""


class ObjectNotFound(ReplicationError):
    """Replication {replication} has no object {object!r}; those it has: {known}."""


class ObjectNotReplicable(ReplicationError):
    """{object} cannot be replicated: {problem}. {remedy}"""


class BackfillNeeded(ReplicationError):
    """Objects of replication {replication} get no more changes until they are backfilled: {objects}. Request it with
    RequestBackfillOperator.
    """


class ObjectRecreated(ReplicationError):
    """{object} was dropped in the source and made anew. Its target is kept as it was; backfill the object to go on with
    the new one.
    """


class ObjectFailed(ReplicationError):
    """{object}: {problem}. Its target holds everything before {position}. {remedy}"""


class SourceUnreachable(ReplicationError):
    """{source} cannot be reached: {problem}. Nothing was lost; the next run goes on where this one ended."""


class SourceRefused(ReplicationError):
    """{source} refused {what}: {problem}. {remedy}"""


class SourceLocked(SourceRefused):
    """{source}: {what} is locked by somebody else: {problem}. Nothing was changed, and nobody waits behind this session
    any more; try again. {remedy}
    """


class SourceDriverNotInstalled(ReplicationError):
    """Reading from {kind} needs {package}: {command}"""


class SourceIsAnother(ReplicationError):
    """{source} is another database cluster (system identifier {found}) than the one that was replicated ({expected}).
    Its positions mean nothing here. Point the connection at the old one, or recover the replication from an explicit
    position of the new one.
    """


class SourceSetBack(ReplicationError):
    """{source} was set back: its log ends at {found}, and was captured up to {expected}, as after a restore from a
    backup or a failover to a server that was behind. What was captured since may have no counterpart there any more,
    and its positions are given again. Recover the replication from an explicit position and backfill its objects.
    """


class SlotLost(ReplicationError):
    """Replication slot {slot} {problem}. What was committed after {position} and not captured can no longer be read.
    Recover the replication from an explicit position and backfill its objects.
    """


class SlotForeign(ReplicationError):
    """Replication slot {slot} is not ours: {problem}. Drop it, if nobody needs it: {remedy}"""


class SlotAhead(ReplicationError):
    """Replication slot {slot} was moved on to {found} by somebody else; the event log ends at {expected}. What lies
    between is lost. Recover the replication from an explicit position and backfill its objects.
    """


class SlotBusy(ReplicationError):
    """Replication slot {slot} is read by process {pid} of the source. Another capture is under way; wait for it, or end
    that session: SELECT pg_terminate_backend({pid})
    """


class SlotBlocked(ReplicationError):
    """Slot {slot} could not be created in {seconds} seconds: it waits for transactions that are open: {blockers}. Wait
    for their end, or end them: {remedy}
    """


class BackfillInterrupted(ReplicationError):
    """The backfill of {object} was interrupted: {problem}. The target is as it was; the next one starts from the
    beginning.
    """


class BackfillGaveWay(BackfillInterrupted):
    """The backfill of {object} gave way to other sessions of the source: {problem}. The target is as it was; the next
    one starts from the beginning.
    """


class EventLogChanged(ReplicationError):
    """The event log {event_log} of replication {replication} {problem}. Nothing was captured."""


class TargetLost(ReplicationError):
    """The target {target} {problem}. {remedy}"""


class TargetMovedOn(ReplicationError):
    """{target} was written by write {found} of its object; write {number} came too late and wrote nothing."""


class ValueDoesNotFit(ReplicationError):
    """{object}: the value {value!r} of column {column} does not fit {type}, at {position}. Mend it in the source and
    backfill the object, or let the replication write NULL for such values (invalid_values="null").
    """


class ToastedKey(ReplicationError):
    """{object}: at {position} a row was updated without its key in the log, as the key is stored out of line (TOAST).
    Run ALTER TABLE {object} REPLICA IDENTITY FULL in the source, then backfill the object.
    """
