"""How much one consumption takes, of the commits that wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidemark.errors import InvalidArgument
from tidemark.model.table_log import Commit
from tidemark.streams.planning.backlog import change_records

__all__ = ["UNBOUNDED", "Bound", "within"]


@dataclass(frozen=True)
class Bound:
    """All that is given must hold; the rest waits for the next window, in the order of commits.

    `max_commits`: versions, of all tables of a view together. `max_rows`: change records, as the log estimates them, an
    update being two. A window ends before the commit that would exceed it, and takes one commit with rows at least.
    `until`: nothing that was committed after this moment. `ends`: path of a table → its last version that is taken.
    Raises InvalidArgument.
    """

    max_commits: int | None = None
    max_rows: int | None = None
    until: datetime | None = None
    ends: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for argument, most in (("max_commits", self.max_commits), ("max_rows", self.max_rows)):
            if most is not None and most < 1:
                raise InvalidArgument(argument=argument, value=most, problem="at least one")
        if self.until is not None and self.until.tzinfo is None:
            raise InvalidArgument(argument="until", value=self.until, problem="a time needs its zone")

    @property
    def only_commits(self) -> bool:
        """Whether counting versions is enough: no commit has to be read."""
        return self.max_rows is None and self.until is None


UNBOUNDED = Bound()


def within(bound: Bound, commits: Iterator[tuple[int, Commit]]) -> Iterator[tuple[int, Commit]]:
    """The first of `commits`, which are numbered by their tables, that one window takes."""
    rows = 0
    for taken, (table, commit) in enumerate(commits):
        more = 0 if bound.max_rows is None else change_records(commit)
        too_many_rows = bound.max_rows is not None and rows > 0 and rows + more > bound.max_rows
        too_late = bound.until is not None and commit.timestamp > bound.until
        if too_many_rows or too_late or taken == bound.max_commits:
            return
        rows += more
        yield table, commit
