"""Rows that a writer gave other ids between two of their changes, so that no window can hold both."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.changes.planning.sets.folds import ONLY_DELETES_MORE, may_number_anew
from tidemark.model.table_log import Commit

__all__ = ["first_change_after_renumbering"]


def first_change_after_renumbering(commits: Iterable[Commit]) -> int | None:
    """The first version that may change a row again which these commits have changed, and then given another id.

    An overwrite with the option dataChange=false gives such ids. The changes before and after it would count as changes
    of two rows. A removed file with such rows is enough, even if its commit carries them over.
    """
    changed: set[str] = set()  # files with rows that the commits have changed
    renumbered: set[str] = set()  # files with such rows under other ids
    for commit in commits:
        removed = {gone.path for gone in commit.removes}
        if any(gone.data_change and gone.path in renumbered for gone in commit.removes):
            return commit.version
        moved_to = {new.path for new in commit.adds if not new.data_change}
        if removed & renumbered:
            renumbered |= moved_to
        if removed & changed:
            (renumbered if may_number_anew(commit) else changed).update(moved_to)
        deletes_more = commit.operation in ONLY_DELETES_MORE
        changed |= {new.path for new in commit.adds if new.data_change and not (deletes_more and new.path in removed)}
    return None
