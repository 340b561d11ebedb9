"""Files of a table in a window, each with one deletion vector and a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.model.foreign_json import foreign_object
from tidemark.model.table_log import AddFile, DeletionVector, Metadata, RemoveFile

__all__ = ["ADDED", "REMOVED", "FeedFile", "Form", "PathChange", "form_of", "is_known", "physical_rows"]

REMOVED = -1
ADDED = 1

_MOST_ROWS = 2**63
GUESSED_BYTES_PER_ROW = 50  # only for a file without a row count in the log


@dataclass(frozen=True, slots=True)
class Form:
    """One file with one deletion vector, read under `metadata`, which was valid when the form was live."""

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
        """Live rows; None if the log has no count, or more deleted rows than rows."""
        physical = physical_rows(self.stats)
        return None if physical is None or physical < self.deleted else physical - self.deleted

    @property
    def deleted(self) -> int:
        """The number of rows that the deletion vector deletes."""
        return self.deletion_vector.cardinality if self.deletion_vector else 0

    @property
    def likely_rows(self) -> int:
        """Live rows, guessed from the size if the log has no count."""
        return self.rows if self.rows is not None else (self.size or 0) // GUESSED_BYTES_PER_ROW


@dataclass(frozen=True, slots=True)
class PathChange:
    """The forms of one path that do not cancel, with their counts. The change set has each row of the path as often as
    the sum of its forms' counts. Negative counts are of the removed side.

    `all_born`: the window inserted every row of the file, so none has a partner among older rows.
    """

    path: str
    forms: tuple[tuple[Form, int], ...]
    all_born: bool = False

    @property
    def rows(self) -> int:
        """Rows to be read. The number is exact if the files have stats and no deletion vector both grew and shrank."""
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
    """A change file that Delta wrote with the commit `version`. `rows` is a guess if the metrics do not have it."""

    path: str
    size: int
    rows: int
    partition_values: Mapping[str, str | None]
    version: int
    metadata: Metadata


def form_of(action: AddFile | RemoveFile, metadata: Metadata) -> Form:
    """The form that an action adds or removes. Stats without a row count are ignored."""
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
    """Whether the file was in the table before the mark was reached, since its own ids were given out then."""
    return action.base_row_id is not None and action.base_row_id <= (-1 if high_water_mark is None else high_water_mark)


def physical_rows(stats: str | None) -> int | None:
    """Rows of a file, deleted ones included (`numRecords`); None if the stats have no count, or are no stats."""
    rows = foreign_object(stats).get("numRecords")
    return rows if type(rows) is int and 0 <= rows < _MOST_ROWS else None
