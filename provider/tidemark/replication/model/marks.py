"""The mark that a write to an object's target leaves in the target's own log: which events it holds now."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from tidemark.model.codec import to_plain
from tidemark.model.foreign_json import foreign_value
from tidemark.replication.model.replication import LogPosition, TableSchema

__all__ = ["APPS", "SEGMENTS", "ObjectMark", "ObjectWrite", "object_app_id", "parse_object_mark"]

ENVELOPE = "tidemark_object"
EARLIER_APPLY = "write_down"
APPS = "tidemark/"  # begins each application id of ours in a table's log
SEGMENTS = 65_536  # of one number, at most


class ObjectWrite(StrEnum):
    """The kind of a marked commit."""

    BACKFILL = "backfill"
    APPLY = "apply"

    @classmethod
    def _missing_(cls, value: object) -> ObjectWrite | None:
        """Marks of earlier releases stay in the logs of targets as they were written."""
        return cls.APPLY if value == EARLIER_APPLY else None


@dataclass(frozen=True)
class ObjectMark:
    """JSON `{"tidemark_object": {…}}` in the `userMetadata`. After the commit the target has every event before `end`.

    `start`: of a backfill the position it is exact at. `schema`: of a backfill the object's columns there. `widest`:
    the bytes of a row that who reads or writes the table should be ready for.
    """

    object_uid: str
    number: int
    segment: int
    start: LogPosition
    end: LogPosition
    kind: ObjectWrite
    schema: TableSchema | None = None
    widest: int = 0

    @property
    def txn_version(self) -> int:
        """Delta's number of the commit: an older write, and an earlier segment of the same, has a smaller one."""
        return self.number * SEGMENTS + self.segment

    def may_follow(self, newest: ObjectMark, until: LogPosition | None = None) -> bool:
        """Whether `newest`, a mark of the same number in the target, is of the same write: an attempt's that went
        before. `until`: the end of the write's whole range. A store that was restored draws a number again, and then
        what has it is another write.
        """
        if self.kind is ObjectWrite.BACKFILL:  # each attempt has a snapshot of its own, and any will do
            return newest.kind is self.kind
        if newest.kind is ObjectWrite.BACKFILL:  # the copy beside the target, which is brought forward
            return newest.end == self.start
        within = until is None or newest.end <= until
        return newest.start == self.start and within and (newest.segment != self.segment or newest.end == self.end)

    def to_text(self) -> str:
        """The text for `spark.databricks.delta.commitInfo.userMetadata`."""
        return json.dumps({ENVELOPE: to_plain(self)}, sort_keys=True, separators=(",", ":"))


def object_app_id(store_id: str, object_uid: str) -> str:
    """Delta's application id of all writes to an object's target."""
    return f"{APPS}{store_id}/{object_uid}"


def parse_object_mark(user_metadata: str | None) -> ObjectMark | None:
    """The mark in a commit's `userMetadata`, or None where it holds none of ours."""
    return foreign_value(ObjectMark, user_metadata, ENVELOPE)
