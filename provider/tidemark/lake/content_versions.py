"""The last version of a table that changed its rows or its columns."""

from __future__ import annotations

from tidemark.errors import CorruptLog
from tidemark.lake import actions
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.segments import commit_name
from tidemark.lake.state_folds import corrupt_if_garbled

__all__ = ["content_version"]

_WANTED = frozenset({b"add", b"remove", b"metaData", b"protocol"})
_MOST_BACK = 200


def content_version(log: DeltaLog, version: int) -> int:
    """The last version at or before this one that is not known to have moved rows only.

    A commit that is cleaned up, or far back, counts as a change. Raises CorruptLog.
    """
    for at in range(version, max(version - _MOST_BACK, 0), -1):
        if not _moves_only(log, at):
            return at
    return max(version - _MOST_BACK, 0)


def _moves_only(log: DeltaLog, version: int) -> bool:
    name = commit_name(version)
    try:
        data = log.storage.read_bytes(name)
    except FileNotFoundError:
        return False
    except IsADirectoryError as error:
        raise CorruptLog(file=name, problem="it is a directory") from error
    with corrupt_if_garbled(name):
        return not any(
            kind in ("metaData", "protocol") or actions.changes_data(body)
            for kind, body in actions.parse_lines(data, _WANTED, name)
        )
