"""Files of a table as a window sees them: with one deletion vector each, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.model.foreign_json import foreign_object
from tidemark.model.table_log import AddFile, DeletionVector, Metadata, RemoveFile

__all__ = ["ADDED", "REMOVED", "FeedFile", "Form", "PathChange", "form_of", "is_known", "physical_rows"]

REMOVED = -1
ADDED = 1

_MOST_ROWS = 2**63
GUESSED_BYTES_PER_ROW = 50  # only for a file of which the log does not say how many rows it has


@dataclass(frozen=True)
class Form:
    """One file with one deletion vector, read under `metadata`, which was in force when the form was live."""

    path: str
    size: int | None
    partition_values: Mapping[str, str | None] | None
    stats: str | None
    deletion_vector: DeletionVector | None
    base_row_id: int | None
    default_row_commit_version: int | None
    metadata: Metadata

    @property
    def rows(self) -> int | None:
        """Live rows; None where the log does not say, or says that more are deleted than there are."""
        physical = physical_rows(self.stats)
        return None if physical is None or physical < self.deleted else physical - self.deleted

    @property
    def deleted(self) -> int:
        """Rows that the deletion vector takes away."""
        return self.deletion_vector.cardinality if self.deletion_vector else 0

    @property
    def likely_rows(self) -> int:
        """Live rows, guessed from the size where the log does not say."""
        return self.rows if self.rows is not None else (self.size or 0) // GUESSED_BYTES_PER_ROW


@dataclass(frozen=True)
class PathChange:
    """The forms of one path that do not cancel, with their counts: each row of the path stands in the change set as
    often as the forms that have it say, negative for the removed side.

    `all_born`: every row of the file was inserted in the window, so that none has a partner among older rows.
    """

    path: str
    forms: tuple[tuple[Form, int], ...]
    all_born: bool = False

    @property
    def rows(self) -> int:
        """Rows to be read: exact where stats are there and no deletion vector grew and shrank."""
        if len(self.forms) == 1:
            return self.forms[0][0].likely_rows * abs(self.forms[0][1])
        deleted = [form.deleted for form, _ in self.forms]
        whole = abs(sum(count for _, count in self.forms))
        return max(deleted) - min(deleted) + whole * self.forms[0][0].likely_rows

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return self.forms[0][0].size or 0


@dataclass(frozen=True)
class FeedFile:
    """A file of changes that Delta wrote with the commit `version`; `rows` is a guess where the metrics do not say."""

    path: str
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    version: int
    metadata: Metadata


def form_of(action: AddFile | RemoveFile, metadata: Metadata) -> Form:
    """The form that an action adds or removes; stats that do not say how many rows there are count for nothing."""
    return Form(
        path=action.path,
        size=action.size,
        partition_values=action.partition_values,
        stats=None if physical_rows(action.stats) is None else action.stats,
        deletion_vector=action.deletion_vector,
        base_row_id=action.base_row_id,
        default_row_commit_version=action.default_row_commit_version,
        metadata=metadata,
    )


def is_known(action: AddFile, high_water_mark: int | None) -> bool:
    """Whether the file was in the table at some time before the mark was reached: its own ids were given out then."""
    return action.base_row_id is not None and action.base_row_id <= (-1 if high_water_mark is None else high_water_mark)


def physical_rows(stats: str | None) -> int | None:
    """Rows of a file, deleted ones included (`numRecords`); None where the stats do not say, or are no stats."""
    rows = foreign_object(stats).get("numRecords")
    return rows if type(rows) is int and 0 <= rows < _MOST_ROWS else None
