"""A table that keeps rows in lists and writes the log that Delta would write, for tests without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tidemark.changes.planning.sets.folds import Fold
from tidemark.changes.planning.sets.forms import ADDED, REMOVED, Form
from tidemark.model.table_log import AddFile, ChangeFile, Commit, DeletionVector, Metadata, RemoveFile

METADATA = Metadata("t", '{"type":"struct","fields":[]}', (), {"delta.enableRowTracking": "true"})


@dataclass(frozen=True)
class Row:
    """A row with the version that last changed it."""

    row_id: int
    commit: int
    content: int


@dataclass(frozen=True)
class Live:
    """A live file: its path, and the id of its deletion vector, if it has one."""

    path: str
    vector: str | None = None


@dataclass
class SyntheticTable:
    """Rows by file, deletion vectors by id, live files and high-water mark by version."""

    files: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    base: dict[str, int] = field(default_factory=dict)
    written_at: dict[str, int] = field(default_factory=dict)
    vectors: dict[str, frozenset[int]] = field(default_factory=dict)
    versions: list[frozenset[Live]] = field(default_factory=lambda: [frozenset()])
    marks: list[int] = field(default_factory=lambda: [-1])
    commits: list[Commit] = field(default_factory=list)
    inserted: dict[int, tuple[Row, ...]] = field(default_factory=dict)
    feed: dict[str, tuple[tuple[int, Row], ...]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return len(self.versions) - 1

    def rows(self, live: Live) -> list[Row]:
        gone = self.vectors.get(live.vector, frozenset()) if live.vector else frozenset()
        return [row for position, row in enumerate(self.files[live.path]) if position not in gone]

    def snapshot(self, version: int) -> dict[int, Row]:
        found = [row for live in self.versions[version] for row in self.rows(live)]
        assert len({row.row_id for row in found}) == len(found)
        return {row.row_id: row for row in found}

    def write(self, contents: Iterable[int], carried: Iterable[Row] = (), updated: Iterable[Row] = ()) -> Live:
        """A new file: inserted rows get ids of the file's own range, the others keep theirs."""
        version, base = self.version + 1, self._mark + 1
        kept = [*carried, *(Row(row.row_id, version, row.content) for row in updated)]
        start = base + len(kept)
        fresh = tuple(Row(start + n, version, content) for n, content in enumerate(contents))
        path = f"f{len(self.files)}"
        self.files[path], self.base[path], self.written_at[path] = (*kept, *fresh), base, version
        self._mark = base + len(kept) + len(fresh) - 1
        self.inserted[version] = self.inserted.get(version, ()) + fresh
        return Live(path)

    def begin(self) -> None:
        self._mark = self.marks[-1]

    def without(self, live: Live, positions: set[int]) -> Live:
        """The same file with a larger deletion vector."""
        name = f"v{len(self.vectors)}"
        self.vectors[name] = self.vectors.get(live.vector or "", frozenset()) | positions
        return Live(live.path, name)

    def commit(
        self,
        removed: Iterable[Live],
        added: Iterable[Live],
        *,
        data_change: bool = True,
        operation: str | None = None,
        with_feed: bool = False,
    ) -> None:
        """The next version; `with_feed`: with a change file, too, in which inserted rows have no row id."""
        removed, added = list(removed), list(added)
        self.versions.append((self.versions[-1] - frozenset(removed)) | frozenset(added))
        self.marks.append(self._mark)
        self.commits.append(
            Commit(
                version=self.version,
                timestamp=datetime(2026, 1, 1, tzinfo=UTC),
                operation=operation,
                adds=tuple(self._add(live, data_change) for live in added),
                removes=tuple(self._remove(live, data_change) for live in removed),
                metadata=None,
                protocol=None,
                row_id_high_water_mark=self._mark,
                user_metadata=None,
                change_files=self._changes() if with_feed else (),
            )
        )

    def _changes(self) -> tuple[ChangeFile, ...]:
        old, new = (Counter(self.snapshot(version).values()) for version in (self.version - 1, self.version))
        fresh = {row.row_id for row in self.inserted.get(self.version, ())}
        rows = [(REMOVED, row) for row in old - new] + [(ADDED, row) for row in new - old if row.row_id not in fresh]
        path = f"c{self.version}"
        self.feed[path] = tuple(rows)
        return (ChangeFile(path, 10, {}),)

    def of(self, form: Form) -> list[Row]:
        """The rows that a form of a fold stands for."""
        vector = form.deletion_vector.path_or_inline if form.deletion_vector else None
        return self.rows(Live(form.path, vector))

    def _vector(self, live: Live) -> DeletionVector | None:
        return DeletionVector("u", live.vector, 1, len(self.vectors[live.vector]), 1) if live.vector else None

    def _add(self, live: Live, data_change: bool) -> AddFile:
        stats = json.dumps({"numRecords": len(self.files[live.path])})
        size, base, written_at = 1000, self.base[live.path], self.written_at[live.path]
        return AddFile(live.path, size, {}, 0, data_change, stats, self._vector(live), base, written_at)

    def _remove(self, live: Live, data_change: bool) -> RemoveFile:
        base, written_at = self.base[live.path], self.written_at[live.path]
        return RemoveFile(live.path, data_change, 0, 1000, {}, None, self._vector(live), base, written_at)


def signed_rows(table: SyntheticTable, fold: Fold) -> list[tuple[int, Row]]:
    """What the log-only tables of a fold hold: each row of a path as often as its forms count it (of a path whose rows
    were all born there, those with ids of its own), rows where they were born, and change files.
    """
    rows: list[tuple[int, Row]] = []
    for change in fold.changes:
        counts: Counter[Row] = Counter()
        for form, count in change.forms:
            for row in table.of(form):
                if not change.all_born or row.row_id >= table.base[change.path]:
                    counts[row] += count
        rows += [(ADDED if count > 0 else REMOVED, row) for row, count in counts.items() for _ in range(abs(count))]
    rows += [(ADDED, row) for form in fold.births for row in table.of(form) if row.row_id >= table.base[form.path]]
    return rows + [signed for file in fold.feed for signed in table.feed[file.path]]


def without_carried(rows: list[tuple[int, Row]], start: int) -> list[tuple[int, Row]]:
    """Rows on the added side that no commit after `start` changed, and their partners, are left out."""
    carried = {row.row_id for side, row in rows if side == ADDED and row.commit <= start}
    return [(side, row) for side, row in rows if (row.commit > start if side == ADDED else row.row_id not in carried)]


def net(rows: list[tuple[int, Row]]) -> set[tuple[str, bool, int, int]]:
    """(action, is update, row id, content): cancel (row id, commit) as signed multisets, then pair by row id."""
    counts: Counter[Row] = Counter()
    for side, row in rows:
        counts[row] += side
    old = {row.row_id: row.content for row, count in counts.items() if count < 0}
    new = {row.row_id: row.content for row, count in counts.items() if count > 0}
    left = [abs(count) for count in counts.values() if count]
    assert sum(left) == len(old) + len(new), "more than one image of a row on a side"
    return difference(old, new)


def difference(old: dict[int, int], new: dict[int, int]) -> set[tuple[str, bool, int, int]]:
    """The least change set between two ends, by row id (R50)."""
    changes = {("DELETE", row_id in new, row_id, old[row_id]) for row_id in old if new.get(row_id) != old[row_id]}
    return changes | {
        ("INSERT", row_id in old, row_id, new[row_id]) for row_id in new if old.get(row_id) != new[row_id]
    }
