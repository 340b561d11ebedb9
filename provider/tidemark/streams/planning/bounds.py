"""How much one consumption takes, of the commits that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidemark.errors import InvalidArgument
from tidemark.model.table_log import Commit
from tidemark.streams.planning.backlog import bytes_of_changes, change_records

__all__ = ["UNBOUNDED", "Bound", "within"]


@dataclass(frozen=True)
class Bound:
    """All that is given must hold; the rest waits for the next window, in the order of commits.

    `max_commits`: versions, of all tables of a view together. `max_rows`: change records, as the log estimates them, an
    update being two. `max_bytes`: of the files that their commits add and remove. A window ends before the commit that
    would exceed one of both, and takes one commit with changes at least. `until`: nothing that was committed after this
    moment. `ends`: path of a table → its last version that is taken.
    Raises InvalidArgument.
    """

    max_commits: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    until: datetime | None = None
    ends: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for argument in ("max_commits", "max_rows", "max_bytes"):
            most = getattr(self, argument)
            if most is not None and most < 1:
                raise InvalidArgument(argument=argument, value=most, problem="at least one")
        if self.until is not None and self.until.tzinfo is None:
            raise InvalidArgument(argument="until", value=self.until, problem="a time needs its zone")

    @property
    def only_commits(self) -> bool:
        """Whether counting versions is enough: no commit has to be read."""
        return self.max_rows is None and self.max_bytes is None and self.until is None


UNBOUNDED = Bound()


def within(bound: Bound, commits: Iterator[tuple[int, Commit]]) -> Iterator[tuple[int, Commit]]:
    """The first of `commits`, which are numbered by their tables, that one window takes."""
    rows, size = _Most(bound.max_rows, change_records), _Most(bound.max_bytes, bytes_of_changes)
    for taken, (table, commit) in enumerate(commits):
        too_late = bound.until is not None and commit.timestamp > bound.until
        if too_late or taken == bound.max_commits or not (rows.takes(commit) and size.takes(commit)):
            return
        yield table, commit


@dataclass
class _Most:
    """An amount that a window may have; its first commit with any of it may exceed it."""

    most: int | None
    amount_of: Callable[[Commit], int]
    taken: int = 0

    def takes(self, commit: Commit) -> bool:
        """Whether the commit fits, which is counted then."""
        if self.most is None:
            return True
        more = self.amount_of(commit)
        fits = self.taken == 0 or self.taken + more <= self.most
        self.taken += more
        return fits
