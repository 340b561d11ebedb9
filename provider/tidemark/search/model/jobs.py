"""The job that keeps a search table up, and the mark of its commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.model.jobs import Job
from tidemark.search.model.paths import SearchPath

__all__ = ["KEEP_SEARCH_PATH", "MARK", "KeepReport", "KeepRequest", "Kept", "UpkeepMark"]

MARK = "tidemark_search"  # the name of the mark in the userMetadata of a commit


@dataclass(frozen=True)
class KeepRequest:
    """Cover the files of the table at `path` in `version` by these paths. `app_id`: that of the Search. `most_bytes`:
    of the base in one commit; a file is never divided.
    """

    path: str
    version: int
    location: str
    app_id: str
    paths: tuple[SearchPath, ...]
    most_bytes: int


@dataclass(frozen=True)
class UpkeepMark:
    """A commit of the upkeep. `files`: of the base that it covers; `read`: their bytes. `rebuilt`: it has emptied the
    search table before.
    """

    app_id: str
    base_version: int
    files: int
    read: int
    rebuilt: bool
    started_at: datetime


@dataclass(frozen=True)
class Kept:
    """A commit of the upkeep, as the log of the search table has it. `size`: the bytes that it added."""

    version: int
    mark: UpkeepMark
    rows: int
    size: int
    at: datetime

    @property
    def seconds(self) -> float:
        """The time from the start of the work to the commit."""
        return max(0.0, (self.at - self.mark.started_at).total_seconds())


@dataclass(frozen=True)
class KeepReport:
    """The search table after the upkeep: its version, its rows, its bytes, and the files of the base that it covers.
    `problem`: the reason why a path could not be kept.
    """

    version: int
    files: int
    rows: int
    size: int
    problem: str | None = None


KEEP_SEARCH_PATH = Job("keep_search_path", KeepRequest, KeepReport, "search.driver.job_keep:keep_search_path")
