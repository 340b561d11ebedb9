"""Which files a log directory holds: commits, and checkpoints that are whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["LOG_DIRECTORY", "CheckpointFiles", "LogFiles", "commit_name", "list_log"]

LOG_DIRECTORY = "_delta_log"
_COMMIT = re.compile(r"^(\d{20})\.json$")
_CLASSIC = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
_PART = re.compile(r"^(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet$")
_V2 = re.compile(r"^(\d{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(json|parquet)$")


@dataclass(frozen=True)
class CheckpointFiles:
    """One whole checkpoint: all its parts, or the top-level file of a V2 one."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class LogFiles:
    """Versions that have a commit file, ascending, and the whole checkpoints, ascending by version."""

    commits: tuple[int, ...]
    checkpoints: tuple[CheckpointFiles, ...]

    @property
    def head(self) -> int:
        """The newest version that anything stands for; -1 for an empty log."""
        newest = self.commits[-1] if self.commits else -1
        return max(newest, self.checkpoints[-1].version if self.checkpoints else -1)

    def checkpoint_at_or_before(self, version: int) -> CheckpointFiles | None:
        """The newest whole checkpoint that a state of `version` can start from."""
        return next((found for found in reversed(self.checkpoints) if found.version <= version), None)


def commit_name(version: int) -> str:
    """The commit file of a version, below the table's directory."""
    return f"{LOG_DIRECTORY}/{version:020d}.json"


def list_log(names: Iterable[str]) -> LogFiles:
    """Sort the names of a log directory; incomplete multi-part checkpoints and other files do not count."""
    commits: list[int] = []
    whole: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if found := _COMMIT.match(name):
            commits.append(int(found[1]))
        elif found := _CLASSIC.match(name) or _V2.match(name):
            whole.append(CheckpointFiles(int(found[1]), (name,)))
        elif found := _PART.match(name):
            parts.setdefault((int(found[1]), int(found[3])), []).append(name)
    whole += [
        CheckpointFiles(version, tuple(sorted(group)))
        for (version, count), group in parts.items()
        if len(group) == count
    ]
    return LogFiles(tuple(sorted(commits)), tuple(sorted(whole, key=lambda one: one.version)))
