"""The client: search optimization of tables, and reads of the files that can hold rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tidemark.client.frame_predicates import filtered_table, in_place_of, predicate_of
from tidemark.client.query_result import SEARCH, SPARK, ArrowResult, FrameResult, QueryResult
from tidemark.client.table_search import Chosen, TableSearch
from tidemark.errors import InvalidArgument, LakeError, SourceError
from tidemark.model.statements import TransactionKey
from tidemark.search.driver.frames import rows_of_files
from tidemark.search.driver.rows import are_few, matching_rows
from tidemark.search.driver.sampling import sampled
from tidemark.search.model.jobs import Kept
from tidemark.search.model.paths import Search, SearchPath
from tidemark.search.model.terms import is_exact
from tidemark.search.planning.choosing import Choice
from tidemark.search.planning.costs import costs, sample_of
from tidemark.search.planning.defining import paths_added
from tidemark.search.planning.sql import parse_targets
from tidemark.search.worker import definitions
from tidemark.search.worker.upkeep import KeptSearch, keep_search
from tidemark.sql.foreign_sql import SqlNotUnderstood
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.search.model.requests import Target

__all__ = ["SearchOfALake"]


class SearchOfALake:
    """The part of `Lake` that searches large tables."""

    _context: ClientContext

    @cached_property
    def table_search(self) -> TableSearch:
        """The search paths of tables, and what this client knows of them."""
        return TableSearch(self._context)

    def add_search_optimization(self, table: str, on: str | None = None) -> Search:
        """Give a table search paths: `EQUALITY(a, b.c), SUBSTRING(d), RANGE(e), ORDER(f)`. None: equality on each
        column that can be searched. The next upkeep builds them.

        A second run changes nothing. Raises SearchRefused, NotYetSupported, SqlCompilationError, TableNotFound.
        """
        return self.add_search_targets(table, _targets(on))

    def add_search_targets(self, table: str, targets: Sequence[Target]) -> Search:
        """The same, for a parsed statement."""
        context = self._context
        found = context.tables.reference(table)
        metadata = context.tables(found).state().metadata
        return definitions.add_search(context.store, found, metadata, targets, by=context.who)

    def drop_search_optimization(self, table: str, on: str | None = None) -> Search | None:
        """Take search paths away, None for all. Returns the rest. The table may be gone. Raises SearchNotFound,
        TableNotFound.
        """
        return self.drop_search_targets(table, _targets(on))

    def drop_search_targets(self, table: str, targets: Sequence[Target]) -> Search | None:
        """The same, for a parsed statement."""
        context = self._context
        place = context.place_of(table)
        path = definitions.path_to_drop(context.store, table, place, lambda name: context.tables.locate(name)[0])
        return definitions.drop_search(context.store, path, table, targets, by=context.who)

    def search_optimization(self, table: str) -> Search:
        """The search optimization of a table. Raises SearchNotFound."""
        return definitions.get_search(self._context.store, self._locate(table), table)

    def show_search_optimization(self) -> tuple[Search, ...]:
        """The search optimization of each table that has one, by name."""
        return definitions.list_searches(self._context.store)

    def keep_search_path(self, table: str) -> KeptSearch:
        """Build the search table, or cover the files that are new since the last upkeep. Raises SearchNotFound."""
        context = self._context
        key = TransactionKey("client", context.store.new_id(), "transaction")
        return keep_search(context.runtime, context.tables.locate(table)[0], table, key=key)

    def search_history(self, table: str) -> tuple[Kept, ...]:
        """The commits of the upkeep, newest first, with files, rows, bytes and seconds. Raises SearchNotFound."""
        return definitions.search_history(self._context.store, self.search_optimization(table))

    def estimate_search_costs(self, table: str, on: str | None = None) -> dict[str, Any]:
        """The costs of search paths from a sample of the table: time and bytes of build and upkeep. It also has the
        number of files that a lookup reads. None: those of the paths that the table has.
        """
        return self.estimate_search_targets(table, _targets(on))

    def estimate_search_targets(self, table: str, targets: Sequence[Target]) -> dict[str, Any]:
        """The same, for parsed targets."""
        store, path = self._context.store, self._locate(table)
        search, snapshot = self.table_search.of(path), self.table_search.newest(path)
        paths: tuple[SearchPath, ...] = () if search is None else search.paths
        if targets or not paths:
            paths, _ = paths_added(table, snapshot.state.metadata, (), 1, targets)
        sample = sample_of(list(snapshot.files.values()))
        samples = [sampled(snapshot, sample, path) for path in paths if path.has_rows]
        history = () if search is None else definitions.search_history(store, search)
        return costs(table, snapshot.files, sample, samples, search, history, store.clock())

    def explain_search(self, table: str, where: str) -> Choice:
        """The files that would be read for the predicate now, and the reason for each step. Nothing is read."""
        return self._chosen(table, where).choice

    def search(self, table: str, where: str, columns: Sequence[str] | None = None) -> QueryResult:
        """The rows of a table for which the predicate is true, from the files that can hold them.

        Few files are read in this process, and no JVM is needed; otherwise Spark reads them. `columns`: None for all.
        """
        chosen = self._chosen(table, where)
        start = partial(getattr, self._context, "spark")
        names = _names(chosen, columns)
        if are_few(chosen.choice.files):
            rows = matching_rows(chosen.snapshot, chosen.choice.files, chosen.term, names)
            if rows is not None:
                return ArrowResult(rows, chosen.snapshot.state.metadata.schema_json, SEARCH, None, "", start)
        frame = self._frame(chosen).where(where)
        shown = frame if columns is None else frame.select(*columns)
        return FrameResult(shown, SPARK, None, "more files, or an expression that only Spark knows", start)

    def prune(self, frame: DataFrame) -> DataFrame:
        """The same rows as `frame` has, read from the files that can hold them. `frame` filters one Delta table by
        predicates that search paths know, and selects columns of it. Any other one is returned as it is.
        """
        try:
            found = filtered_table(frame)
            chosen = None if found is None else self.table_search.chosen(found.path, found.where)
        except (SourceError, LakeError, SqlNotUnderstood):
            return frame
        if found is None or chosen is None or not chosen.choice.pruned or not is_exact(chosen.term):
            return frame
        rows = self._frame(chosen).where(found.where).select(*found.columns)
        return in_place_of(frame.filter("false"), rows) or frame

    def searched(self, frame: DataFrame, path: str) -> DataFrame:
        """The table at a path, `frame`, whose `where` reads the files that can hold rows. Columns of `frame` are
        columns of the result, too. If another schema has come since, `where` is that of Spark.
        """
        if self.table_search.of(path) is None:
            return frame
        plain = frame.filter  # `where` calls it

        def where(condition: str | Column) -> DataFrame:
            text = predicate_of(plain, condition)
            chosen = None if text is None else self.table_search.chosen(path, text)
            if chosen is None or not chosen.choice.pruned:
                return plain(condition)
            rows = in_place_of(plain("false"), self._frame(chosen))
            return plain(condition) if rows is None else rows.where(condition)

        frame.where = frame.filter = where  # type: ignore[method-assign]
        return frame

    def _chosen(self, table: str, where: str) -> Chosen:
        return self.table_search.chosen(self._locate(table), where)

    def _locate(self, name: str) -> str:
        """The URI of a table, without Spark before it has started, as `ResultsOfALake` finds it."""
        raise NotImplementedError

    def _frame(self, chosen: Chosen) -> DataFrame:
        """The files as a DataFrame; the table itself if no file is left out."""
        context = self._context
        if not chosen.choice.pruned:
            return context.spark.table(path_name(chosen.snapshot.log.uri))
        return rows_of_files(context.spark, chosen.snapshot, chosen.choice.files, context.workspace)


def _targets(on: str | None) -> tuple[Target, ...]:
    return () if on is None else parse_targets(on)


def _names(chosen: Chosen, columns: Sequence[str] | None) -> list[str]:
    """The columns, as the table spells them. Raises InvalidArgument."""
    from tidemark.changes.planning.source_schema import fields

    known = [field.name for field in fields(chosen.snapshot.state.metadata)]
    if columns is None:
        return known
    by_name: dict[str, str] = {name.lower(): name for name in known}
    unknown = next((name for name in columns if name.lower() not in by_name), None)
    if unknown is not None:
        raise InvalidArgument(argument="columns", value=unknown, problem=f"the columns are {', '.join(known)}")
    return [by_name[name.lower()] for name in columns]
