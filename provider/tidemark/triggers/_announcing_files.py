"""When the files of a pipe are announced, and when again: a decision on what was seen and announced last."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidemark.triggers._announcing import Reason

if TYPE_CHECKING:
    from tidemark.pipes.worker.pending import PendingFiles

__all__ = ["AnnouncedFiles", "next_step"]

_NEW_WATCHER = timedelta(minutes=1)  # two DAG files that disagree about a watcher make new ones all the time
_UNFINISHED = "unfinished"
_ABANDONED_AFTER = timedelta(hours=1)  # a batch that is not loaded until then has lost its run


@dataclass(frozen=True)
class AnnouncedFiles:
    """The last announcement, or a batch since it was first seen. `files`: the fingerprint of their names."""

    files: str
    at: datetime
    watch: str

    def to_plain(self) -> dict[str, Any]:
        """The form in which Airflow keeps it."""
        return {**asdict(self), "at": self.at.isoformat()}

    @classmethod
    def from_plain(cls, plain: Any) -> AnnouncedFiles | None:
        """The inverse; None for the text of another release, so that files are announced again."""
        try:
            found = cls(**{**plain, "at": datetime.fromisoformat(plain["at"])})
        except (TypeError, KeyError, ValueError):
            return None
        return found if found.at.tzinfo is not None else None


def next_step(
    pending: PendingFiles,
    last: AnnouncedFiles | None,
    told: PendingFiles | None,
    *,
    now: datetime,
    watch: str,
    renew_after: timedelta,
) -> tuple[AnnouncedFiles | None, Reason | None]:
    """The announcement to keep from now on, and why the files are announced now; None if they are not.

    Each set of names is announced once, and again after `renew_after`. Of the files that were `told` some may be taken
    since, which is no news. A new watcher announces existing files, once in a minute. Without files, a batch that stays
    unfinished for an hour is announced, since its run may be dead.
    """
    found = pending.fingerprint or (_UNFINISHED if pending.unfinished else "")
    mine = AnnouncedFiles(found, now, watch)
    if not found:
        return None, None
    if last is None or last.files != found:
        if found == _UNFINISHED:
            return mine, None
        if last is not None and told is not None and not pending.has_others_than(told):
            return replace(last, files=found), None
        return mine, Reason.DATA
    if found != _UNFINISHED and last.watch != watch and now - last.at >= _NEW_WATCHER:
        return mine, Reason.DATA
    again = now - last.at >= (_ABANDONED_AFTER if found == _UNFINISHED else renew_after)
    return (mine, Reason.AGAIN) if again else (last, None)
