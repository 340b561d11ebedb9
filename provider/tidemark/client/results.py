"""The client: queries whose answers are reused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from tidemark.client.context import ClientContext, logger
from tidemark.client.query_result import CACHE, LOG, SPARK, FrameResult, QueryResult, RowResult, StoredResult
from tidemark.errors import SqlCompilationError, TableNotFound
from tidemark.lake.tables import resolve
from tidemark.materialized.worker.views import find_views
from tidemark.model.streams import Addressing, TableRef
from tidemark.results.driver.writing import write_answer
from tidemark.results.model.answers import Miss, StoredAnswer, Why
from tidemark.results.model.jobs import QueryRequest
from tidemark.results.planning.queries import Query, digests_of, read_query
from tidemark.results.planning.settings import affecting
from tidemark.results.store import cached_results
from tidemark.results.worker.asking import Asked, ask, from_log
from tidemark.results.worker.cache import Hit, ResultCache, forget, keep, look_up
from tidemark.results.worker.files import OpenAnswer
from tidemark.sql.table_names import table_name
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.store import catalog_tables
from tidemark.streams.worker.catalog import is_at_its_path, known_to_the_store
from tidemark.streams.worker.streams import list_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.streams.planning.stream_sql.constants import Constant

__all__ = ["ResultsOfALake"]

_OTHER_GRAMMAR = "CHANGES, AT, BEFORE and the functions of streams show another thing at each time"
_TURNED_OFF = "use_cached_result is False"
_HIT = ""


class ResultsOfALake:
    """The part of `Lake` that answers queries with earlier answers."""

    _context: ClientContext
    _variables: dict[str, Constant]

    def query(self, sql: str, *, use_cached_result: bool | None = None) -> QueryResult:
        """The rows of a query, from an earlier answer of the same text over the same versions of its tables.

        `count(*)`, `min` and `max` without a filter come from the log of the table, if that has them exactly. Neither
        needs a JVM. Otherwise Spark runs the query over the versions that its tables had at this call. The answer is
        kept for a day after its last use. `use_cached_result`: False lets Spark run the query, and keeps nothing.
        Raises InvalidArgument for a statement that is no query, and what `sql` raises.
        """
        uses = self._context.use_cached_result if use_cached_result is None else use_cached_result
        known = self._context.session.known if uses else {}
        asked = self._asked(sql, known) if uses else Miss(Why.OFF, _TURNED_OFF)
        if isinstance(asked, Asked):
            if self._context.session.started:
                self._check_names(asked)
            found = self._without_spark(asked)
            return self._run(sql, asked, found, known) if isinstance(found, Miss) else found
        return self._plain(sql, asked)

    def why_not(self, sql: str) -> str:
        """The reason why `query` would run Spark now; empty if it would not. Nothing is run, and no use is noted."""
        asked = self._asked(sql, self._context.session.known)
        if isinstance(asked, Miss):
            return asked.text
        if asked.aggregates is not None and not isinstance(from_log(asked), str):
            return _HIT
        found = look_up(self._cache, asked, note_use=False)
        return found.text if isinstance(found, Miss) else _HIT

    def cached_results(self) -> tuple[StoredAnswer, ...]:
        """The answers that may be reused, the last used first."""
        now = self._context.store.clock()
        return tuple(one for one in self._context.store.read(cached_results.live) if one.expires_at > now)

    def forget_results(self, *, sql: str | None = None, table: str | None = None) -> int:
        """Let no answer be reused, or none of this text, or none that reads this table. Returns how many ended."""
        path, texts = None if table is None else self._locate(table), frozenset() if sql is None else digests_of(sql)
        going = [
            answer
            for answer in self.cached_results()
            if (sql is None or answer.text_digest in texts)
            and (path is None or path in {leaf.path for leaf in answer.tables})
        ]
        return forget(self._cache, going)

    @property
    def _cache(self) -> ResultCache:
        context = self._context
        return ResultCache(context.store, context.paths.workspace, context.options, context.rules)

    def _asked(self, sql: str, known: Mapping[str, str]) -> Asked | Miss:
        """The query under the settings of the session."""
        context = self._context
        query = self._parsed(sql)
        if isinstance(query, Miss):
            return query
        against = self._of_this_session(query)
        if against is not None:
            return against
        return ask(
            query,
            settings=affecting(known),
            locate=self._locate,
            options=context.options,
            rules=context.rules,
            now=context.store.clock(),
            streams=frozenset(stream.name.lower() for stream in list_streams(context.store)),
            views=partial(find_views, context.store),
        )

    def _parsed(self, sql: str) -> Query | Miss:
        try:
            if parse_stream_sql(sql, now=self._context.store.clock(), variables=self._variables) is not None:
                return Miss(Why.STREAM, _OTHER_GRAMMAR)
        except SqlCompilationError as error:
            return Miss(Why.NOT_UNDERSTOOD, str(error).splitlines()[0])
        return read_query(sql)

    def _of_this_session(self, query: Query) -> Miss | None:
        """The reason why only this session knows what the text means."""
        session = self._context.session
        if not session.started:
            return None
        for name in query.names:
            if len(table_name(name).parts) == 1 and _is_temporary(session.spark, name):
                return Miss(Why.VIEW, f"{name} is a temporary view")
        return None

    def _locate(self, name: str) -> str:
        """The URI of a table. Without a session only the lake root and kept names are asked. Raises as `resolve`."""
        context, meant = self._context, table_name(name)
        if meant.path is None and Addressing.LAKE in meant.ways and context.lake_root is not None:
            try:
                return resolve(name, context.lake_root, context.options)[0]
            except TableNotFound:
                if not context.session.started:
                    raise
        elif meant.path is None and not context.session.started:
            return self._kept(name)
        return context.tables.locate(name)[0]

    def _kept(self, name: str) -> str:
        """The path of a name of a catalog, as this client found it before. Raises as `resolve`."""
        context = self._context
        known = known_to_the_store(context.store, self._catalog, table_name(name).text)
        if known is not None and is_at_its_path(known, context.tables):
            return known.path
        return resolve(name, context.lake_root or "/", context.options)[0]

    @property
    def _catalog(self) -> str:
        """The name under which the store keeps what the catalogs of this client's session have said."""
        said = f"{self._context.lake_root}\n{sorted(self._context.session.settings.items())}"
        return f"client-{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def _without_spark(self, asked: Asked) -> QueryResult | Miss:
        start = partial(getattr, self._context, "spark")
        if asked.aggregates is not None:
            known = from_log(asked)
            if not isinstance(known, str):
                return RowResult(known.titles, known.types, known.values, LOG, asked.key, "", start)
        found = look_up(self._cache, asked)
        if isinstance(found, Hit):
            return StoredResult(found.opened, CACHE, asked.key, "", start)
        return found

    def _run(self, sql: str, asked: Asked, miss: Miss, known: Mapping[str, str]) -> QueryResult:
        """Spark runs the query, and its answer is kept. With a session that starts now, settings and names are those of
        the session.
        """
        context = self._context
        if not context.session.started:
            logger.info("Spark starts: %s.", miss.text)
            _ = context.spark
            known = context.session.known
            again = self._asked(sql, known)
            if isinstance(again, Miss):
                return self._plain(sql, again)
            asked = again
            self._check_names(asked)
        return self._stored(sql, asked, miss, known)

    def _stored(self, sql: str, asked: Asked, miss: Miss, known: Mapping[str, str]) -> QueryResult:
        from pyspark.errors import AnalysisException

        context, cache = self._context, self._cache
        session = context.session.for_queries(known)
        request = QueryRequest(asked.pinned, cache.new_directory(), {}, asked.titled)
        try:
            report = write_answer(session, request, context.options, known=asked.settings)
        except AnalysisException as error:
            return self._plain(sql, Miss(Why.NOT_UNDERSTOOD, f"its text over fixed versions fails: {_line(error)}"))
        if report.written is None:
            return self._plain(sql, Miss(Why.TYPE, f"no file keeps the type of {report.unstored} exactly"))
        opened = OpenAnswer(report.written, context.options)
        kept = keep(cache, asked, report.written)
        if isinstance(kept, Miss):
            miss = kept
        if isinstance(kept, Miss) or kept.written != report.written:
            context.workspace.adopt(report.written.location)
        logger.info("Spark ran the query: %s.", miss.text)
        return StoredResult(
            opened, SPARK, None if isinstance(kept, Miss) else asked.key, miss.text, lambda: context.spark
        )

    def _check_names(self, asked: Asked) -> None:
        """Raises AmbiguousTableName for a name that is two tables. Names that only a catalog knows are kept."""
        context = self._context
        for leaf in asked.leaves:
            meant = table_name(leaf.name)
            if meant.path is not None:
                continue
            context.tables.require_one(leaf.name)
            if meant.only_in_catalog:
                found = TableRef(meant.text, leaf.path, leaf.table_id, Addressing.CATALOG)
                self._keep_name(found)

    def _keep_name(self, table: TableRef) -> None:
        store = self._context.store
        if known_to_the_store(store, self._catalog, table.name) != table:
            store.write(partial(catalog_tables.keep, conn_id=self._catalog, table=table, at=store.clock()))

    def _plain(self, sql: str, miss: Miss) -> QueryResult:
        logger.info("Spark runs the query: %s.", miss.text)
        return FrameResult(self.sql(sql), SPARK, None, miss.text, lambda: self._context.spark)

    def sql(self, text: str) -> DataFrame:
        """One statement, as `Lake.sql` runs it."""
        raise NotImplementedError


def _is_temporary(spark: object, name: str) -> bool:
    from tidemark.client.catalog import VIEWS
    from tidemark.streams.driver.catalog_tables import kind_of

    return (kind_of(spark, name) or "").upper() in VIEWS  # type: ignore[arg-type]


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
