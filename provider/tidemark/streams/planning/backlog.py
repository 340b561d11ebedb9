"""How much waits in a version of a table, and what made it: estimated from its commit alone (R125)."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.changes.planning.sets.forms import physical_rows
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import AddFile, Commit, RemoveFile

__all__ = ["bytes_of_changes", "change_records", "operation_of"]

COUNTED: Mapping[str, Mapping[str, int]] = {
    "DELETE": {"numDeletedRows": 1},
    "UPDATE": {"numUpdatedRows": 2},  # a DELETE and an INSERT each
    "MERGE": {"numTargetRowsInserted": 1, "numTargetRowsDeleted": 1, "numTargetRowsUpdated": 2},
}
INSERTS = ("WRITE", "STREAMING UPDATE", "CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "COPY INTO")


def operation_of(commit: Commit) -> str:
    """INSERT, INSERT OVERWRITE, UPDATE, DELETE, MERGE, TRUNCATE, or what Delta calls it; UNKNOWN where nothing is said.

    An INSERT OVERWRITE is an insert that also takes rows away.
    """
    operation = (commit.operation or "UNKNOWN").upper()
    if operation in INSERTS:
        return "INSERT OVERWRITE" if any(file.data_change for file in commit.removes) else "INSERT"
    return operation


def change_records(commit: Commit) -> int:
    """About how many change records the version makes, an update being two.

    By the writer's own count if it gives one, else by the rows that files hold more or less than before. A file whose
    rows nobody counted adds nothing.
    """
    changes = [file.data_change for file in commit.adds] + [file.data_change for file in commit.removes]
    if not any(changes):
        return 0
    weights = COUNTED.get((commit.operation or "").upper(), {})
    said = {name: commit.operation_metrics[name] for name in weights if name in commit.operation_metrics}
    counts = {name: whole_number(count) for name, count in said.items()}
    if counts and None not in counts.values():
        return sum((count or 0) * weights[name] for name, count in counts.items())
    after = {file.path: _rows(file) for file in commit.adds}
    before = {file.path: _rows(file) for file in commit.removes}
    return sum(abs(after.get(path, 0) - before.get(path, 0)) for path in {*after, *before})


def bytes_of_changes(commit: Commit) -> int:
    """Bytes of the files that the version adds and removes, as the log has them. A file in both, which has another
    deletion vector, counts once, and one whose size nobody says not at all.
    """
    sizes = {file.path: file.size or 0 for file in commit.removes if file.data_change}
    sizes |= {file.path: file.size for file in commit.adds if file.data_change}
    return sum(sizes.values())


def _rows(file: AddFile | RemoveFile) -> int:
    count = physical_rows(file.stats)
    if count is None:
        return 0
    return count - (file.deletion_vector.cardinality if file.deletion_vector else 0)
