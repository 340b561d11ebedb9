"""The search paths of tables as one client uses them: which files to read for a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING

from tidemark.errors import LakeError, SourceError
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.storage import Storage
from tidemark.results.worker.zones import zone_of
from tidemark.search.driver.index import SearchIndex
from tidemark.search.driver.snapshots import Snapshot, Snapshots
from tidemark.search.model.paths import Method, Search
from tidemark.search.model.terms import Term
from tidemark.search.planning.choosing import Choice, Lookup, choose, entries_of
from tidemark.search.planning.ordering import FirstRows, choose_first
from tidemark.search.planning.predicates import term_of
from tidemark.search.planning.queries import SearchedQuery
from tidemark.search.worker.definitions import find_search, has_searches

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["Chosen", "TableSearch"]

_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class Chosen:
    """The files of a table for a predicate, at one version."""

    snapshot: Snapshot
    term: Term
    choice: Choice


class TableSearch:
    """It keeps the newest snapshots of base and search tables, and follows their logs."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._snapshots = Snapshots()
        self._indexes: dict[str, SearchIndex] = {}

    @property
    def any(self) -> bool:
        """Whether any table has search paths."""
        return has_searches(self._context.store)

    def of(self, table_path: str) -> Search | None:
        """The search optimization of the table at the canonical path."""
        return find_search(self._context.store, table_path)

    def newest(self, table_path: str) -> Snapshot:
        """The newest snapshot of a table."""
        return self._snapshots.newest(DeltaLog(Storage(table_path, self._context.options)))

    def chosen(self, table_path: str, where: str, *, names: Sequence[str] = (), search: Search | None = None) -> Chosen:
        """The files that can hold rows of the predicate, in the newest version. Raises what the log raises."""
        snapshot = self.newest(table_path)
        term = term_of(where, snapshot.state.metadata, zone=self._zone(), names=names)
        return self.chosen_by(snapshot, term, search or self.of(table_path))

    def chosen_by(self, snapshot: Snapshot, term: Term, search: Search | None) -> Chosen:
        """The same for a term, in a snapshot."""
        paths = () if search is None else search.paths
        lookup = Lookup()
        entries = entries_of(term, paths)
        if search is not None and entries:
            try:
                lookup = self._index(search).look_up(entries)
            except (FileNotFoundError, LakeError, SourceError):
                lookup = Lookup()  # an upkeep has replaced it, or somebody has deleted it: all files are read
        return Chosen(snapshot, term, choose(term, snapshot.files, snapshot.statistics, paths, lookup))

    def progress(self, search: Search) -> int:
        """The percent of the table's newest files that all stored paths cover, rounded down."""
        wanted = {path.id for path in search.stored_paths}
        try:
            files, covered = self.newest(search.table.path).files, self._index(search).covered if wanted else {}
        except (FileNotFoundError, LakeError, SourceError):
            return 0  # before the first upkeep
        known = sum(all(name in covered.get(path, ()) for path in wanted) for name in files)
        return 100 * known // len(files) if files else 100

    def choice_of(self, query: SearchedQuery, snapshot: Snapshot, search: Search | None) -> Choice | None:
        """The files that a query of the table needs; None if it has no part by which they are chosen."""
        term = query.term(snapshot.state.metadata, self._zone())
        if term is not None:
            return self.chosen_by(snapshot, term, search).choice
        first = query.first_rows(snapshot.state.metadata)
        ordered = search is not None and first is not None and _has_order(search, first)
        return choose_first(first, snapshot.files, snapshot.statistics) if ordered and first is not None else None

    def _index(self, search: Search) -> SearchIndex:
        snapshot = self.newest(search.location)
        before = self._indexes.get(search.uid)
        if before is not None and before.snapshot is snapshot and before.paths == search.paths:
            return before
        found = self._indexes[search.uid] = SearchIndex.of(snapshot, search.app_id, search.paths, before)
        return found

    def _zone(self) -> tzinfo | None:
        """The time zone of the session; None before it has started, unless it is given."""
        session = self._context.session
        name = session.spark.conf.get(_ZONE) if session.started else session.settings.get(_ZONE)
        return None if name is None else zone_of(str(name))


def _has_order(search: Search, first: FirstRows) -> bool:
    """Whether the table has an ORDER path of the column."""
    return any(path.method is Method.ORDER and path.column.physical == first.column.physical for path in search.paths)
