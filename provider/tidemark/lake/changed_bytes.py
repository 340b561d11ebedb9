"""The bytes of the files that commits add and remove, without keeping the files."""

from __future__ import annotations

from tidemark.lake import actions, fields
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.segments import commit_name
from tidemark.lake.state_folds import corrupt_if_garbled

__all__ = ["changed_bytes"]

_KINDS = frozenset({b"add", b"remove"})


def changed_bytes(log: DeltaLog, after: int, through: int) -> int:
    """The bytes of files that the versions after + 1 … through add and remove, if that changes data. A file in both
    counts once for a commit, and one whose size nobody says not at all. Raises LogIncomplete (a gap), CorruptLog.
    """
    return sum(_of_commit(data, commit_name(version)) for version, data in log.commit_files(after, through))


def _of_commit(data: bytes, name: str) -> int:
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    with corrupt_if_garbled(name):
        for kind, body in actions.parse_lines(data, _KINDS, name):
            if actions.changes_data(body):
                size = fields.optional_whole(body, "size") or 0
                (added if kind == "add" else removed)[fields.path(body)] = size
    return sum(added.values()) + sum(size for path, size in removed.items() if path not in added)
