"""The last version of a table that changed its rows or its columns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tidemark.errors import CorruptLog
from tidemark.lake import actions
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.segments import commit_name
from tidemark.lake.state_folds import corrupt_if_garbled

__all__ = ["Content", "content_at", "content_of"]

_WANTED = frozenset({b"add", b"remove", b"metaData", b"protocol"})
_MOST_BACK = 200


@dataclass(frozen=True)
class Content:
    """A version, and the digest of its commit; None if that is cleaned up. Copies of a table have the same id. They may
    have the same version, and then their commits differ.
    """

    version: int
    digest: str | None


def content_of(log: DeltaLog, version: int) -> Content:
    """The last version at or before this one that is not known to have moved rows only.

    A commit that is cleaned up, or far back, counts as a change. Raises CorruptLog.
    """
    least = max(version - _MOST_BACK, 0)
    for at in range(version, least, -1):
        data = _commit(log, at)
        if data is None or not _moves_only(data, commit_name(at)):
            return Content(at, _digest(data))
    return content_at(log, least)


def content_at(log: DeltaLog, version: int) -> Content:
    """The version itself, even if it has only moved rows. Raises CorruptLog."""
    return Content(version, _digest(_commit(log, version)))


def _digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def _commit(log: DeltaLog, version: int) -> bytes | None:
    name = commit_name(version)
    try:
        return log.storage.read_bytes(name)
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise CorruptLog(file=name, problem="it is a directory") from error


def _moves_only(data: bytes, name: str) -> bool:
    with corrupt_if_garbled(name):
        return not any(
            kind in ("metaData", "protocol") or actions.changes_data(body)
            for kind, body in actions.parse_lines(data, _WANTED, name)
        )
