"""A Delta table's transaction log: head, state at a version, the commits of a range, times."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.errors import CorruptLog, LogIncomplete, NotADeltaTable, TableNotFound, VersionNotFound
from tidemark.lake import actions, fields
from tidemark.lake.checkpoints import read_state_actions
from tidemark.lake.checksums import Gain, require_same_state
from tidemark.lake.log_tails import log_tail, tail_around, times_from
from tidemark.lake.segments import LOG_DIRECTORY, CheckpointFiles, LogFiles, bare, commit_name, list_log
from tidemark.lake.state_folds import StateFold, corrupt_if_garbled
from tidemark.lake.storage import Storage, StoredFile
from tidemark.model.table_log import Commit, TableState

__all__ = ["DeltaLog"]

_STATE_KINDS = frozenset({b"metaData", b"protocol", b"domainMetadata", b"txn"})
_COMMIT_KINDS = _STATE_KINDS | {b"add", b"remove", b"cdc", b"commitInfo"}
_FILE_KINDS = frozenset({b"add", b"remove"})
_OF_FILES = {"add": actions.add_file, "remove": actions.remove_file, "cdc": actions.change_file}
_LAST_MILLIS = int(datetime.max.replace(tzinfo=UTC).timestamp()) * 1000
_LARGEST_EMPTY_FILE = 1 << 20  # bytes of a Parquet file without rows, whose schema alone it has
_READ_AHEAD = 16  # commits in flight from an object store, where one request takes milliseconds


class DeltaLog:
    """The log of the table at `uri` (canonical form). Each call reads the storage again; no commit is cached.

    A file that cannot be part of a log raises CorruptLog, and anything that is no file NotAFile. Every method raises
    StorageUnreachable or StorageRefused if the storage does not answer. Listings may have any order, and lack files
    that are written during the listing. A commit counts as missing only if a request by its name finds none.

    Reads begin at the newest checkpoint at or before the requested version, or at the start of the range. They begin at
    version 0 only if nothing else exists. A local log and one of S3 are listed from there on, too. Only `earliest`,
    `version_at` and times of files look at the whole of it.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.uri = storage.uri

    @classmethod
    def open(cls, location: str, options: Mapping[str, str] | None = None) -> DeltaLog:
        """The log of the table at a path or URI. Raises NotADeltaTable. Raises TableNotFound, also for a table that has
        neither a commit nor a file with rows yet.
        """
        log = cls(Storage(location, options))
        if log.head() < 0:
            if all(_is_of_log(file.name) or _has_no_rows(log.storage, file) for file in log.storage.files_below()):
                raise TableNotFound(path=log.uri)  # its creation died before the commit, or is running
            problem = f"its {LOG_DIRECTORY} holds no commit"
            raise NotADeltaTable(path=log.uri, problem=problem)
        return log

    def head(self) -> int:
        """The newest version."""
        return self._newest().head

    def earliest(self) -> int:
        """The earliest version from which every commit up to the head exists; head + 1 if not even the head does."""
        return self._first_unbroken(self._all())

    def has_commit(self, version: int) -> bool:
        """Whether the commit of a version exists, and was not cleaned up."""
        return self.storage.exists(commit_name(version))

    def goes_on_from(self, version: int) -> bool:
        """Whether the changes after `version` can be read: its state, and every commit after it."""
        files = self._reaching(version)
        checkpoint = files.checkpoint_at_or_before(version)
        return self._first_unbroken(files) <= (checkpoint.version + 1 if checkpoint else 0)

    def checkpoint_at_or_before(self, version: int) -> CheckpointFiles | None:
        """The newest whole checkpoint that a state of `version` can start from."""
        return self._reaching(version).checkpoint_at_or_before(version)

    def _first_unbroken(self, files: LogFiles) -> int:
        first = files.head + 1
        for version in reversed(files.commits):
            while first - version > 1 and self.storage.exists(commit_name(first - 1)):
                first -= 1
            if first - version > 1:
                break
            first = version
        return first

    def state(self, version: int | None = None) -> TableState:
        """Metadata, protocol, row-id mark and transactions at a version (default: the head).

        Raises VersionNotFound, LogIncomplete (no checkpoint and no commits to start from), CorruptLog.
        """
        files = self._newest() if version is None else self._reaching(version)
        at = files.head if version is None else version
        self._require_version(files, at)
        checkpoint = files.checkpoint_at_or_before(at)
        fold = StateFold(self.uri)
        if checkpoint is not None:
            fold.take(read_state_actions(self.storage, checkpoint), checkpoint.names[0])
        for number, data in self._in_turn(range(checkpoint.version + 1 if checkpoint else 0, at + 1), at):
            name = commit_name(number)
            fold.take(actions.parse_lines(data, _STATE_KINDS, name), name)
        state = fold.state(at)
        if checkpoint is not None and at in files.checksums:
            require_same_state(self.storage, state)
        return state

    def commits(self, after: int, through: int, *, listed: bool = False) -> Iterator[Commit]:
        """The versions after + 1 … through, in order.

        Times of files ascend within the range. With `listed` they ascend within the whole log, as those of `timestamp`.
        That costs a listing (an object store is listed anyway).

        Raises VersionNotFound (past the head), LogIncomplete (a gap), CorruptLog.
        """
        if through <= after:
            return
        written = self._listed_times(0 if listed else after + 1) if listed or not self.storage.is_local else None
        times = {} if written is None else _ascending(written)
        self._require_version(self._newest() if written is None else list_log(written), through)
        previous: datetime | None = None
        gain = Gain()
        for version, data in self._in_turn(range(after + 1, through + 1), after):
            found = _by_kind(data, commit_name(version))
            info = (found.get("commitInfo") or [{}])[0]
            commit = _commit(version, found, info, self._commit_time(version, info, previous, times))
            gain.take(commit)
            if version == through:
                gain.require_whole(self.storage, after, through, info.get("txnId"))
            previous = commit.timestamp
            yield commit

    def commit_infos(self, after: int, through: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """(version, `commitInfo`) of the versions after + 1 … through that have one, in order. Of other actions only
        the kind is read.

        Raises LogIncomplete (a gap), CorruptLog.
        """
        for version, data in self._in_turn(range(after + 1, through + 1), after):
            for _, info in actions.parse_lines(data, frozenset({b"commitInfo"}), commit_name(version)):
                yield version, info

    def commit_files(self, after: int, through: int) -> Iterator[tuple[int, bytes]]:
        """(version, content) of the versions after + 1 … through, in order. Raises LogIncomplete (a gap)."""
        return self._in_turn(range(after + 1, through + 1), after)

    def user_metadata(self, after: int, through: int) -> Iterator[str]:
        """The `userMetadata` of the versions after + 1 … through, in order. Raises as `commit_infos`."""
        for version, info in self.commit_infos(after, through):
            with corrupt_if_garbled(commit_name(version)):
                said = fields.said_text(info, "userMetadata")
            if said is not None:
                yield said

    def timestamp(self, version: int) -> datetime:
        """The time of the version's commit: its in-commit timestamp, else the file's time, which never decreases."""
        self._require_version(self._newest(), version)
        exact = self._in_commit_time(version)
        if exact is not None:
            return exact
        return self._file_times(version)[version] if version else self.storage.modified_at(commit_name(0))

    def version_at(self, when: datetime) -> int:
        """The newest version that was committed at or before `when`, among those that still exist.

        In-commit timestamps count from the version that enabled them, file times before it. Raises VersionNotFound for
        a time before the first.
        """
        files = self._all()
        exact = [version for version in files.commits if version >= self._exact_from(files.head)]
        if exact and (count := bisect_right(exact, when, key=self._exact_time)):
            return exact[count - 1]
        times = {version: time for version, time in self._file_times().items() if version not in set(exact)}
        if count := bisect_right(list(times.values()), when):
            return list(times)[count - 1]
        label = f"at {when.isoformat()}"
        earliest = files.commits[0] if files.commits else files.head
        raise VersionNotFound(table=self.uri, version=label, earliest=earliest, latest=files.head)

    def has_changes(self, after: int, through: int) -> bool:
        """Whether any commit of after + 1 … through changed rows (R120, R123): log only, never a false negative.

        Raises VersionNotFound (past the head), LogIncomplete (a gap), CorruptLog.
        """
        for version, data in self._in_turn(range(through, after, -1), after):
            name = commit_name(version)
            with corrupt_if_garbled(name):
                if any(actions.changes_data(body) for _, body in actions.parse_lines(data, _FILE_KINDS, name)):
                    return True
        return False

    def _newest(self) -> LogFiles:
        """The files that the head's state needs, and maybe more."""
        tail = log_tail(self.storage)
        return self._all() if tail is None else tail.files

    def _reaching(self, version: int) -> LogFiles:
        """The files that the state at the version needs, all behind them, and maybe more."""
        files = self._newest()
        if files.commits[:1] == (0,) or files.checkpoint_at_or_before(version) is not None:
            return files
        tail = tail_around(self.storage, version)
        return self._all() if tail is None else tail.files

    def _all(self) -> LogFiles:
        try:
            return list_log(self.storage.names(LOG_DIRECTORY))
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.storage.exists() and not all(map(_is_of_log, self.storage.names())):
                raise NotADeltaTable(path=self.uri, problem=f"it has no {LOG_DIRECTORY}") from error
            raise TableNotFound(path=self.uri) from error

    def _require_version(self, files: LogFiles, version: int) -> None:
        if not 0 <= version <= files.head:
            files = self._all()
            earliest = files.commits[0] if files.commits else files.head
            raise VersionNotFound(table=self.uri, version=version, earliest=earliest, latest=files.head)

    def _commit_bytes(self, version: int, start: int) -> bytes:
        try:
            return self.storage.read_bytes(commit_name(version))
        except IsADirectoryError as error:
            raise CorruptLog(file=commit_name(version), problem="it is a directory") from error
        except FileNotFoundError as error:
            self._require_version(self._newest(), version)
            raise LogIncomplete(path=self.uri, version=version, start=start) from error

    def _in_turn(self, versions: Sequence[int], start: int) -> Iterator[tuple[int, bytes]]:
        """Each version with its commit file, in the given order. Commits in an object store are read ahead."""
        if self.storage.is_local or len(versions) < 2:
            yield from ((version, self._commit_bytes(version, start)) for version in versions)
            return
        with ThreadPoolExecutor(_READ_AHEAD) as pool:
            coming: deque[tuple[int, Future[bytes]]] = deque()
            for version in versions:
                coming.append((version, pool.submit(self._commit_bytes, version, start)))
                if len(coming) == _READ_AHEAD:
                    first, data = coming.popleft()
                    yield first, data.result()
            yield from ((version, data.result()) for version, data in coming)

    def _listed_times(self, version: int) -> dict[str, datetime]:
        """File times, by one listing: of the version and all behind it, and maybe of more."""
        found = times_from(self.storage, version) if version else None
        try:
            return self.storage.modified_times(LOG_DIRECTORY) if found is None else found
        except FileNotFoundError:
            self._all()  # raises the error
            raise

    def _commit_time(
        self, version: int, info: Mapping[str, Any], previous: datetime | None, times: Mapping[int, datetime]
    ) -> datetime:
        exact = _in_commit_time(info, commit_name(version))
        if exact is not None:
            return exact
        if version in times:
            return times[version]
        return _not_before(self.storage.modified_at(commit_name(version)), previous)

    def _exact_time(self, version: int) -> datetime:
        found = self._in_commit_time(version)
        if found is None:
            raise CorruptLog(
                file=commit_name(version), problem="it lacks the in-commit timestamp that the table promises"
            )
        return found

    def _in_commit_time(self, version: int) -> datetime | None:
        name = commit_name(version)
        found = actions.parse_lines(self._commit_bytes(version, version), frozenset({b"commitInfo"}), name)
        return next((time for _, body in found if (time := _in_commit_time(body, name)) is not None), None)

    def _file_times(self, version: int | None = None) -> dict[int, datetime]:
        """Version → time of each commit file, in ascending order; `version` is among them."""
        written = self.storage.modified_times(LOG_DIRECTORY)
        if version is not None and (name := bare(commit_name(version))) not in written:
            written[name] = self.storage.modified_at(commit_name(version))
        return _ascending(written)

    def _exact_from(self, head: int) -> int:
        """The version from which in-commit timestamps order the log; head + 1 if they are off."""
        settings = self.state(head).metadata.configuration
        if settings.get("delta.enableInCommitTimestamps", "false").lower() != "true":
            return head + 1
        return int(settings.get("delta.inCommitTimestampEnablementVersion", 0))


def _by_kind(data: bytes, name: str) -> dict[str, list[Any]]:
    """The actions of a commit, by kind; those of files are parsed, since a commit may have millions of them. Kinds that
    describe the whole table have one action at most.
    """
    found: dict[str, list[Any]] = {}
    with corrupt_if_garbled(name):
        for kind, body in actions.parse_lines(data, _COMMIT_KINDS, name):
            of_file = _OF_FILES.get(kind)
            found.setdefault(kind, []).append(body if of_file is None else of_file(body))
    for kind in ("commitInfo", "metaData", "protocol"):
        if len(found.get(kind, ())) > 1:
            raise CorruptLog(file=name, problem=f"it has more than one {kind}")
    return found


def _commit(version: int, by_kind: Mapping[str, Sequence[Any]], info: Mapping[str, Any], time: datetime) -> Commit:
    name = commit_name(version)
    with corrupt_if_garbled(name):
        marks = [actions.row_id_mark(body) for body in by_kind.get("domainMetadata", ())]
        transactions = [actions.transaction(body) for body in by_kind.get("txn", ())]
        operation = fields.said_text(info, "operation")
        commit = Commit(
            version=version,
            timestamp=time,
            operation=operation,
            adds=tuple(by_kind.get("add", ())),
            removes=tuple(gone for gone in by_kind.get("remove", ()) if not actions.is_of_vector(gone, operation)),
            metadata=next((actions.metadata(body) for body in by_kind.get("metaData", ())), None),
            protocol=next((actions.protocol(body) for body in by_kind.get("protocol", ())), None),
            row_id_high_water_mark=next((mark for mark in marks if mark is not None), None),
            user_metadata=fields.said_text(info, "userMetadata"),
            operation_parameters=fields.said(info, "operationParameters"),
            operation_metrics=fields.said(info, "operationMetrics"),
            transactions=dict(transactions),
            change_files=tuple(by_kind.get("cdc", ())),
            txn_id=fields.said_text(info, "txnId"),
        )
        read = info.get("readVersion")
        if type(read) is int and read >= version:
            raise ValueError("it was based on a later version than its predecessor")
        if len(commit.transactions) != len(transactions):
            raise ValueError("it has one transaction twice")
        for kind, files in (("added", commit.adds), ("removed", commit.removes)):
            if len({file.path for file in files}) != len(files):  # Delta's protocol: whatever the deletion vectors
                raise ValueError(f"a file is {kind} twice")
        if {file.key for file in commit.adds} & {file.key for file in commit.removes}:
            raise ValueError("a file is added and removed")  # actions of a commit have no order
    return commit


def _is_of_log(name: str) -> bool:
    """Whether a file is in the log's directory, or is the placeholder of a directory."""
    return not name or name.startswith(LOG_DIRECTORY)


def _has_no_rows(storage: Storage, file: StoredFile) -> bool:
    """Whether a file is all that a creation leaves that died before its commit: Spark writes a file without rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    last = file.name.rpartition("/")[2]
    if last.startswith(".") and last.endswith(".crc"):  # the sum of a file, on local disks
        return True
    if not last.endswith(".parquet") or file.problem is not None or file.size > _LARGEST_EMPTY_FILE:
        return False
    data = storage.read_bytes(file.name)
    try:
        return not data or pq.read_metadata(pa.BufferReader(data)).num_rows == 0
    except (pa.ArrowException, OSError):  # OSError: of a footer that is garbage, as the bytes were read before
        return False


def _in_commit_time(info: Mapping[str, Any], name: str) -> datetime | None:
    with corrupt_if_garbled(name):
        millis = fields.optional_whole(info, "inCommitTimestamp")
        if millis is None:
            return None
        if millis > _LAST_MILLIS:
            raise ValueError("inCommitTimestamp is past the year 9999")
        return datetime.fromtimestamp(millis / 1000, UTC)


def _ascending(written: Mapping[str, datetime]) -> dict[int, datetime]:
    times: dict[int, datetime] = {}
    previous: datetime | None = None
    for version in list_log(written).commits:
        previous = _not_before(written[bare(commit_name(version))], previous)
        times[version] = previous
    return times


def _not_before(time: datetime, previous: datetime | None) -> datetime:
    """Delta's rule for file times: each commit at least a millisecond after the one before."""
    return time if previous is None or time > previous else previous + timedelta(milliseconds=1)
