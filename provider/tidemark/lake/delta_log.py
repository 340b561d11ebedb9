"""A Delta table's transaction log: head, state at a version, the commits of a range, times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tidemark.errors import CorruptLog, LogIncomplete, NotADeltaTable, TableNotFound, VersionNotFound
from tidemark.lake import actions
from tidemark.lake.checkpoints import read_state_actions
from tidemark.lake.segments import LOG_DIRECTORY, LogFiles, commit_name, list_log
from tidemark.lake.storage import Storage
from tidemark.model.table_log import Commit, Metadata, Protocol, TableState

__all__ = ["DeltaLog"]

_STATE_KINDS = frozenset({b"metaData", b"protocol", b"domainMetadata"})
_COMMIT_KINDS = _STATE_KINDS | {b"add", b"remove", b"cdc", b"commitInfo", b"txn"}
_FILE_KINDS = frozenset({b"add", b"remove"})


class DeltaLog:
    """The log of the table at `uri` (canonical form). Every call looks anew; nothing of a commit is cached.

    Reads begin at the newest checkpoint at or before the version asked for, or at the range's start, never at version 0
    unless there is no other beginning.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.uri = storage.uri

    @classmethod
    def open(cls, location: str, options: Mapping[str, str] | None = None) -> DeltaLog:
        """The log of the table at a path or URI. Raises TableNotFound, NotADeltaTable."""
        log = cls(Storage(location, options))
        if log._files().head < 0:
            problem = f"its {LOG_DIRECTORY} holds no commit"
            raise NotADeltaTable(path=log.uri, problem=problem)
        return log

    def head(self) -> int:
        """The newest version."""
        return self._files().head

    def earliest(self) -> int:
        """The earliest version from which every commit up to the head is there; head + 1 if not even the head is."""
        files = self._files()
        first = files.head + 1
        for version in reversed(files.commits):
            if first - version > 1:
                break
            first = version
        return first

    def state(self, version: int | None = None) -> TableState:
        """Metadata, protocol and row-id mark at a version (default: the head).

        Raises VersionNotFound, LogIncomplete (no checkpoint and no commits to start from), CorruptLog.
        """
        files = self._files()
        at = files.head if version is None else version
        self._require_version(files, at)
        checkpoint = files.checkpoint_at_or_before(at)
        fold = _StateFold(self.uri)
        if checkpoint is not None:
            fold.take(read_state_actions(self.storage, checkpoint), checkpoint.names[0])
        for number in range(checkpoint.version + 1 if checkpoint else 0, at + 1):
            name = commit_name(number)
            fold.take(actions.parse_lines(self._commit_bytes(number, at), _STATE_KINDS, name), name)
        return fold.state(at)

    def commits(self, after: int, through: int) -> Iterator[Commit]:
        """The versions after + 1 … through, in order.

        Raises VersionNotFound (past the head), LogIncomplete (a gap), CorruptLog.
        """
        if through > after:
            self._require_version(self._files(), through)
        previous: datetime | None = None
        for version in range(after + 1, through + 1):
            commit = self._commit(version, after, previous)
            previous = commit.timestamp
            yield commit

    def timestamp(self, version: int) -> datetime:
        """When the version was committed: its in-commit timestamp, else the file's time, which never goes backwards."""
        files = self._files()
        self._require_version(files, version)
        if version not in files.commits:
            raise LogIncomplete(path=self.uri, version=version, start=version)
        exact = self._in_commit_time(version)
        return exact if exact is not None else self._file_times()[version]

    def version_at(self, when: datetime) -> int:
        """The newest version committed at or before `when`, as far as commits are kept.

        In-commit timestamps count from the version on that turned them on, file times before it. Raises
        VersionNotFound for a time before the first.
        """
        files = self._files()
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
        for version in range(through, after, -1):
            name = commit_name(version)
            for _, body in actions.parse_lines(self._commit_bytes(version, after), _FILE_KINDS, name):
                if body.get("dataChange", True):
                    return True
        return False

    def _files(self) -> LogFiles:
        try:
            return list_log(self.storage.names(LOG_DIRECTORY))
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.storage.exists() and self.storage.names():
                raise NotADeltaTable(path=self.uri, problem=f"it has no {LOG_DIRECTORY}") from error
            raise TableNotFound(path=self.uri) from error

    def _require_version(self, files: LogFiles, version: int) -> None:
        if not 0 <= version <= files.head:
            earliest = files.commits[0] if files.commits else files.head
            raise VersionNotFound(table=self.uri, version=version, earliest=earliest, latest=files.head)

    def _commit_bytes(self, version: int, start: int) -> bytes:
        try:
            return self.storage.read_bytes(commit_name(version))
        except FileNotFoundError as error:
            self._require_version(self._files(), version)
            raise LogIncomplete(path=self.uri, version=version, start=start) from error

    def _commit(self, version: int, start: int, previous: datetime | None) -> Commit:
        name = commit_name(version)
        found: dict[str, list[dict[str, Any]]] = {}
        for kind, body in actions.parse_lines(self._commit_bytes(version, start), _COMMIT_KINDS, name):
            found.setdefault(kind, []).append(body)
        info = (found.get("commitInfo") or [{}])[0]
        marks = [actions.row_id_mark(body) for body in found.get("domainMetadata", ())]
        try:
            return Commit(
                version=version,
                timestamp=self._commit_time(version, info, previous),
                operation=info.get("operation"),
                adds=tuple(actions.add_file(body) for body in found.get("add", ())),
                removes=tuple(actions.remove_file(body) for body in found.get("remove", ())),
                metadata=next((actions.metadata(body) for body in found.get("metaData", ())), None),
                protocol=next((actions.protocol(body) for body in found.get("protocol", ())), None),
                row_id_high_water_mark=next((mark for mark in marks if mark is not None), None),
                user_metadata=info.get("userMetadata"),
                operation_parameters={
                    key: str(value) for key, value in (info.get("operationParameters") or {}).items()
                },
                operation_metrics={key: str(value) for key, value in (info.get("operationMetrics") or {}).items()},
                transactions={body["appId"]: body["version"] for body in found.get("txn", ())},
                change_files=tuple(actions.change_file(body) for body in found.get("cdc", ())),
            )
        except (KeyError, ValueError, TypeError) as error:
            raise CorruptLog(file=name, problem=f"an action lacks or garbles the field {error}") from error

    def _commit_time(self, version: int, info: Mapping[str, Any], previous: datetime | None) -> datetime:
        if info.get("inCommitTimestamp") is not None:
            return _from_millis(info["inCommitTimestamp"])
        return _not_before(self.storage.modified_at(commit_name(version)), previous)

    def _exact_time(self, version: int) -> datetime:
        found = self._in_commit_time(version)
        if found is None:
            raise CorruptLog(
                file=commit_name(version), problem="it lacks the in-commit timestamp that the table promises"
            )
        return found

    def _in_commit_time(self, version: int) -> datetime | None:
        data = self._commit_bytes(version, version)
        for _, body in actions.parse_lines(data, frozenset({b"commitInfo"}), commit_name(version)):
            if body.get("inCommitTimestamp") is not None:
                return _from_millis(body["inCommitTimestamp"])
        return None

    def _file_times(self) -> dict[int, datetime]:
        """Version → time of each commit file, ascending and never backwards."""
        written = self.storage.modified_times(LOG_DIRECTORY)
        times: dict[int, datetime] = {}
        previous: datetime | None = None
        for version in list_log(written).commits:
            previous = _not_before(written[commit_name(version).rsplit("/", 1)[-1]], previous)
            times[version] = previous
        return times

    def _exact_from(self, head: int) -> int:
        """The version from which in-commit timestamps order the log; head + 1 where they are off."""
        settings = self.state(head).metadata.configuration
        if settings.get("delta.enableInCommitTimestamps", "false").lower() != "true":
            return head + 1
        return int(settings.get("delta.inCommitTimestampEnablementVersion", 0))


class _StateFold:
    """Takes state actions in the order of their versions; the last of each kind holds."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._metadata: Metadata | None = None
        self._protocol: Protocol | None = None
        self._mark: int | None = None

    def take(self, found: Iterable[tuple[str, dict[str, Any]]], file: str) -> None:
        try:
            for kind, body in found:
                if kind == "metaData":
                    self._metadata = actions.metadata(body)
                elif kind == "protocol":
                    self._protocol = actions.protocol(body)
                elif (mark := actions.row_id_mark(body)) is not None:
                    self._mark = mark
        except (KeyError, ValueError, TypeError) as error:
            raise CorruptLog(file=file, problem=f"an action lacks or garbles the field {error}") from error

    def state(self, version: int) -> TableState:
        if self._metadata is None or self._protocol is None:
            raise CorruptLog(file=self._uri, problem=f"no metaData or no protocol up to version {version}")
        return TableState(version, self._metadata, self._protocol, self._mark)


def _not_before(time: datetime, previous: datetime | None) -> datetime:
    """Delta's rule for file times: each commit at least a millisecond after the one before."""
    return time if previous is None or time > previous else previous + timedelta(milliseconds=1)


def _from_millis(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)
