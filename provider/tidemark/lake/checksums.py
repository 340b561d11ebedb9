"""Delta's version checksums (`.crc`), which describe the table at a version. Most writers write one with each commit.

If log and checksum differ, files or lines were lost or exchanged. The two alone do not show which one is wrong. A
missing or damaged checksum is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemark.errors import CorruptLog, NotAFile
from tidemark.lake import actions
from tidemark.lake.segments import checksum_name, commit_name
from tidemark.model.foreign_json import foreign_object, parsed
from tidemark.model.table_log import Metadata, Protocol

if TYPE_CHECKING:
    from tidemark.lake.storage import Storage
    from tidemark.model.table_log import Commit, TableState

__all__ = ["Gain", "require_same_state"]

_DESCRIBES_AGAIN = frozenset(  # operations whose files Delta does not count either
    {"ROWTRACKINGBACKFILL", "ROWTRACKINGUNBACKFILL", "COMPUTESTATS", "DROPFEATURE", "DELETIONVECTORTOMBSTONES"}
)
_COUNTERS = ("numFiles", "tableSizeBytes", "numDeletedRecordsOpt")
_NO_TABLE = {"numFiles": 0, "tableSizeBytes": 0, "numDeletedRecordsOpt": 0}


def require_same_state(storage: Storage, state: TableState) -> None:
    """Nothing, or CorruptLog if the version's checksum has another state."""
    said = _Checksum.read(storage, state.version)
    if said.contradicts(state.metadata, state.protocol, state.row_id_high_water_mark):
        problem = "the metadata, protocol or row ids that it has are not those of the checkpoint and commits before it"
        raise CorruptLog(file=f"{storage.uri}/{checksum_name(state.version)}", problem=problem)


class Gain:
    """Files and bytes that a range of commits adds to a table, compared with the checksums at both ends.

    Files and bytes are no longer counted after a commit that describes existing files again.
    """

    def __init__(self) -> None:
        self._counted = True
        self._counts: dict[str, int] = dict.fromkeys(_COUNTERS, 0)
        self._last: dict[str, Any] = {"metadata": None, "protocol": None, "mark": None}

    def take(self, commit: Commit) -> None:
        """Add the next commit."""
        for name, found in (
            ("metadata", commit.metadata),
            ("protocol", commit.protocol),
            ("mark", commit.row_id_high_water_mark),
        ):
            self._last[name] = self._last[name] if found is None else found
        operation = (commit.operation or "").upper().replace(" ", "")
        self._counted = self._counted and operation not in _DESCRIBES_AGAIN and not _describes_again(commit)
        for sign, files in ((1, commit.adds), (-1, commit.removes)):
            for file in files:
                if file.size is None:
                    self._counts.pop("tableSizeBytes", None)
                for name, count in (
                    ("numFiles", 1),
                    ("tableSizeBytes", file.size or 0),
                    ("numDeletedRecordsOpt", file.deletion_vector.cardinality if file.deletion_vector else 0),
                ):
                    if name in self._counts:
                        self._counts[name] += sign * count

    def require_whole(self, storage: Storage, after: int, through: int, txn_id: object) -> None:
        """Nothing, or CorruptLog if the checksums of `after` and `through` show other commits, or lost lines.

        `txn_id`: of the last commit.
        """
        now = _Checksum.read(storage, through)
        if isinstance(now.said.get("txnId"), str) and isinstance(txn_id, str) and now.said["txnId"] != txn_id:
            problem = f"it is the commit {txn_id}, but {checksum_name(through)} is of {now.said['txnId']}"
            raise CorruptLog(file=f"{storage.uri}/{commit_name(through)}", problem=problem)
        before = _Checksum.read(storage, after) if after >= 0 else _Checksum(_NO_TABLE)
        lost = self._lost(before, now)
        if lost:
            problem = f"{lost} since version {after}, but the commits up to here do not show it: they are not whole"
            raise CorruptLog(file=f"{storage.uri}/{checksum_name(through)}", problem=problem)

    def _lost(self, before: _Checksum, now: _Checksum) -> str | None:
        for name, count in self._counts.items() if self._counted else ():
            grown = [checksum.said.get(name) for checksum in (before, now)]
            if all(type(value) is int for value in grown) and grown[1] - grown[0] != count:  # type: ignore[operator]
                return f"{name} went from {grown[0]} to {grown[1]}"
        metadata, protocol, mark = (
            before.state(name) if self._last[name] is None else self._last[name]
            for name in ("metadata", "protocol", "mark")
        )
        return "metadata, protocol or row ids changed" if now.contradicts(metadata, protocol, mark) else None


def _describes_again(commit: Commit) -> bool:
    """Whether the commit adds files that an earlier commit had added, without changing a row."""
    return any(
        not file.data_change
        and file.default_row_commit_version is not None
        and file.default_row_commit_version < commit.version
        for file in commit.adds
    )


@dataclass(frozen=True)
class _Checksum:
    said: Mapping[str, Any]

    @classmethod
    def read(cls, storage: Storage, version: int) -> _Checksum:
        """The content of the checksum file. Empty if it does not exist, is no file or is not JSON."""
        try:
            return cls(foreign_object(storage.read_bytes(checksum_name(version))))
        except (FileNotFoundError, IsADirectoryError, NotAFile):
            return cls({})

    def state(self, name: str) -> Any:
        """Its `metadata`, `protocol` or row-id `mark`; None if it has none."""
        try:
            if name == "metadata":
                return actions.metadata(self.said["metadata"])
            if name == "protocol":
                return actions.protocol(self.said["protocol"])
            marks = [actions.row_id_mark(body) for body in self.said["domainMetadata"]]
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        return next((mark for mark in marks if mark is not None), None)

    def contradicts(self, metadata: Metadata | None, protocol: Protocol | None, mark: int | None) -> bool:
        """Whether it differs from the arguments. None is not compared."""
        mine = self.state("metadata"), self.state("protocol"), self.state("mark")
        return any(
            one is not None and other is not None and _form(one) != _form(other)
            for one, other in zip(mine, (metadata, protocol, mark), strict=True)
        )


def _form(value: Metadata | Protocol | int) -> object:
    """A form that is equal for values with the same meaning, in any order."""
    if isinstance(value, Metadata):
        settings = dict(value.configuration)
        return value.table_id, parsed(value.schema_json), value.partition_columns, settings
    if isinstance(value, Protocol):
        features = frozenset(value.reader_features), frozenset(value.writer_features)
        return value.min_reader_version, value.min_writer_version, *features
    return value
