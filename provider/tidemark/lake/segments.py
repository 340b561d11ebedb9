"""The files of a log directory: commits, and whole checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "LOG_DIRECTORY",
    "CheckpointFiles",
    "LogFiles",
    "bare",
    "checkpoint_name",
    "checksum_name",
    "commit_name",
    "list_log",
]

LOG_DIRECTORY = "_delta_log"
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_CHECKSUM = re.compile(r"([0-9]{20})\.crc")
_V2 = re.compile(r"([0-9]{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(json|parquet)")


@dataclass(frozen=True)
class CheckpointFiles:
    """One whole checkpoint: all its parts, or the top-level file of a V2 one."""

    version: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class LogFiles:
    """Versions with a commit file, whole checkpoints, and versions with a checksum, each in ascending order."""

    commits: tuple[int, ...]
    checkpoints: tuple[CheckpointFiles, ...]
    checksums: frozenset[int] = frozenset()

    @property
    def head(self) -> int:
        """The newest version that has a commit or a checkpoint; -1 for an empty log."""
        newest = self.commits[-1] if self.commits else -1
        return max(newest, self.checkpoints[-1].version if self.checkpoints else -1)

    def checkpoint_at_or_before(self, version: int) -> CheckpointFiles | None:
        """The newest whole checkpoint that a state of `version` can start from."""
        return next((found for found in reversed(self.checkpoints) if found.version <= version), None)


def commit_name(version: int) -> str:
    """The commit file of a version, below the table's directory."""
    return f"{LOG_DIRECTORY}/{version:020d}.json"


def checksum_name(version: int) -> str:
    """The checksum file of a version, which Delta's own writers write, below the table's directory."""
    return f"{LOG_DIRECTORY}/{version:020d}.crc"


def bare(name: str) -> str:
    """The name of a log's file below the log's directory, as listings have it."""
    return name.rpartition("/")[2]


def checkpoint_name(version: int, part: int = 1, parts: int = 1) -> str:
    """A file of the classic checkpoint of a version, below the log's directory."""
    middle = "" if parts == 1 else f".{part:010d}.{parts:010d}"
    return f"{version:020d}.checkpoint{middle}.parquet"


def list_log(names: Iterable[str]) -> LogFiles:
    """The files of a log directory from its names, in any order. Incomplete checkpoints and other files are ignored."""
    commits: list[int] = []
    checksums: list[int] = []
    whole: list[CheckpointFiles] = []
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if found := _COMMIT.fullmatch(name):
            commits.append(int(found[1]))
        elif found := _CLASSIC.fullmatch(name) or _V2.fullmatch(name):
            whole.append(CheckpointFiles(int(found[1]), (name,)))
        elif found := _CHECKSUM.fullmatch(name):
            checksums.append(int(found[1]))
        elif found := _PART.fullmatch(name):
            parts.setdefault((int(found[1]), int(found[3])), {})[int(found[2])] = name
    whole += [
        CheckpointFiles(version, tuple(group[number] for number in sorted(group)))
        for (version, count), group in parts.items()
        if sorted(group) == list(range(1, count + 1))
    ]
    whole.sort(key=lambda one: (one.version, one.names))
    return LogFiles(tuple(sorted(commits)), tuple(whole), frozenset(checksums))
