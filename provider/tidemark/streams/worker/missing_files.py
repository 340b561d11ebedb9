"""Whether files that a stream needs are gone from the storage, and how much it keeps there; by the log, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from tidemark.changes.planning.removals import KeptBytes, kept_bytes
from tidemark.changes.planning.sets.at_stake import AtStake, Way, files_at_stake
from tidemark.lake.deletion_vectors import absolute
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.paths import file_uri
from tidemark.model.streams import BaseOffset, Stream, StreamMode
from tidemark.model.table_log import Commit, TableState
from tidemark.streams.planning.staleness import retention_of
from tidemark.streams.worker.unread_commits import COMMIT_CACHE, Parts, UnreadCommits

__all__ = ["MissingFiles", "Unread", "unread"]

_THREADS = 16  # existence is asked of object stores, where one question takes milliseconds


@dataclass(frozen=True)
class MissingFiles:
    """Files are gone that the stream needs; `version` is the first whose changes cannot be read any more."""

    version: int
    files: int
    first: str


@dataclass(frozen=True)
class Unread:
    """The findings in the commits after an offset: what is lost of them, and how much of it the stream keeps alive."""

    missing: MissingFiles | None
    kept: KeptBytes


def unread(
    stream: Stream,
    base: BaseOffset,
    log: DeltaLog,
    head: TableState,
    now: datetime,
    *,
    rows_at_start: Callable[[], bool] = lambda: False,
) -> Unread:
    """Look through the commits after the stream's offset in one of its tables. Commits that were looked through the
    last time are skipped. `rows_at_start`: whether a view reads all the table's rows at the offset.

    A file is asked for only if VACUUM could have taken it. That is so if the log has a VACUUM that went as far. It is
    also so if the file was removed longer ago than the table's shortest retention since the offset. Raises
    LogIncomplete, VersionNotFound, CorruptLog.
    """
    if head.version <= base.version or stream.mode is StreamMode.INSERT_ONLY:
        return Unread(None, KeptBytes())
    own = retention_of(head.metadata.configuration).files
    with COMMIT_CACHE.after(base.version, log, head) as commits:
        removed = commits.removed
        taken_before = max(commits.vacuumed, now - commits.shortest)
        parts: Parts = ()
        if any(one.removed_at < taken_before for one in removed):
            parts = _parts(stream, commits, rows_at_start=rows_at_start())
    return Unread(_missing(log, parts, taken_before), kept_bytes(removed, own, now))


def _parts(stream: Stream, commits: UnreadCommits, *, rows_at_start: bool) -> Parts:
    mode, by_key, initial = stream.mode, bool(stream.keys), stream.initial_rows_pending

    def find(before: TableState, unread: Sequence[Commit]) -> Iterator[tuple[Way, ...]]:
        return files_at_stake(mode, before, unread, by_key=by_key, initial_rows=initial, rows_at_start=rows_at_start)

    return commits.parts((mode, by_key, initial, rows_at_start), find)


def _missing(log: DeltaLog, parts: Iterable[tuple[Way, ...]], taken_before: datetime) -> MissingFiles | None:
    """The first part that no way can read. The ways are asked in turn: most parts have nothing to ask for."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for ways in parts:
            lost: list[tuple[int, str]] = []
            for way in ways:
                gone = list(_gone(pool, log, way, taken_before))
                if not gone:
                    break
                lost = lost or gone
            else:
                if lost:
                    return MissingFiles(
                        min(version for version, _ in lost), len({uri for _, uri in lost}), min(lost)[1]
                    )
    return None


def _gone(pool: ThreadPoolExecutor, log: DeltaLog, way: Way, taken_before: datetime) -> Iterator[tuple[int, str]]:
    """(version, URI) of each file that VACUUM could have taken and that is missing."""
    asked = [
        (one.version, uri) for one in way.files if one.removal.removed_at < taken_before for uri in _uris(log, one)
    ]
    asked += [(0, file_uri(log.uri, path)) for path in way.change_files]
    sizes = pool.map(log.storage.size, [uri for _, uri in asked])
    yield from (one for one, size in zip(asked, sizes, strict=True) if size is None)


def _uris(log: DeltaLog, file: AtStake) -> Sequence[str]:
    vector = None if file.vector is None else absolute(file.vector, log.uri)
    uris = [] if file.path is None else [file_uri(log.uri, file.path)]
    return [*uris, vector.path_or_inline] if vector is not None and vector.storage_type == "p" else uris
