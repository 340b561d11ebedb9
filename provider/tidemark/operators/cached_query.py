"""A query whose answer is reused by later runs, while its tables are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import LineageMixin, flag_of, key_of, whole_number_of
from tidemark.operators._constants import check_constants
from tidemark.operators._pipes import tell_outlets
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.model.statements import TransactionKey
    from tidemark.operators._base import Lineage
    from tidemark.results.model.answers import ReuseRules
    from tidemark.results.worker.cache import ResultCache
    from tidemark.results.worker.queries import QueryAnswer

__all__ = ["CachedQueryOperator"]

_MEBIBYTE = 1 << 20


class CachedQueryOperator(LineageMixin, SparkOperator):
    """Runs a query over Delta tables and keeps its answer as a Parquet file; the same query then needs no Spark.

    An answer is reused while text, settings, time zone and the versions of all tables are the same. It lives for 24
    hours after each use, and 31 days at most. `count(*)`, `min` and `max` without a filter come from the log of the
    table. A retry and a clear do the same. Returns {origin, why, key, columns, rows, location, files, data, tables}.
    `origin` is cache, log or spark, and `why` the reason why Spark ran. `data` are the rows, if they are few. Raises
    QueryNotReusable with the reason, InvalidArgument for other statements, CatalogTableMoved.

    :param sql: the query, or the name of a file that ends in `.sql`. (templated)
    :param settings: settings of Spark for the query, such as spark.sql.session.timeZone, beside those of the
        connection. (templated)
    :param use_cached_result: False lets Spark run the query, and a new answer replaces the old one. (templated)
    :param normalise: white space and comments in the text do not count. (templated)
    :param moved_rows_count: a commit that only moves rows, such as OPTIMIZE, ends the answer, too. (templated)
    :param most_rows: the most rows in the result, which has the location of a larger answer instead.
        (templated)
    :param most_mebibytes: a larger answer is an error, since it is not kept. (templated)
    """

    template_fields: Sequence[str] = (
        "sql", "settings", "use_cached_result", "normalise", "moved_rows_count", "most_rows", "most_mebibytes",
        "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        sql: str,
        settings: Mapping[str, str] | None = None,
        use_cached_result: bool | str = True,
        normalise: bool | str = False,
        moved_rows_count: bool | str = False,
        most_rows: int | str = 100,
        most_mebibytes: int | str = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.settings = settings
        self.use_cached_result = use_cached_result
        self.normalise = normalise
        self.moved_rows_count = moved_rows_count
        self.most_rows = most_rows
        self.most_mebibytes = most_mebibytes
        check_constants(
            self,
            sql=_query_of,
            settings=_settings_of,
            use_cached_result=flag_of,
            normalise=flag_of,
            moved_rows_count=flag_of,
            most_rows=whole_number_of,
            most_mebibytes=whole_number_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The location of the answer, its counts, and its rows if they are few."""
        from tidemark.materialized.worker.views import find_views
        from tidemark.results.worker.queries import answer_query

        sql = _query_of("sql", self.sql)
        cache = self._cache()
        answer = answer_query(
            cache,
            sql,
            settings=self._session(),
            locate=self._locate(context),
            views=partial(find_views, cache.store),
            runtime=self.runtime,
            key=key_of(context),
            use_cached_result=flag_of("use_cached_result", self.use_cached_result),
        )
        result = self._result(answer)
        self.log.info("%(rows)s rows of %(origin)s at %(location)s.", result)
        facts = {name: result[name] for name in ("origin", "key", "rows", "location")}
        tell_outlets(context, self, facts)
        return result

    def planned_lineage(self) -> Lineage | None:
        """The tables of the query."""
        from tidemark.lineage.queries import lineage_of_query

        return lineage_of_query(_query_of("sql", self.sql), self.known_uri)

    def delivered_lineage(self, key_of_task: Callable[[str | None], TransactionKey]) -> Lineage | None:
        """The same: an answer is no table."""
        return self.planned_lineage()

    def _cache(self) -> ResultCache:
        from tidemark.results.worker.cache import ResultCache

        settings = self.hook.settings
        return ResultCache(self.hook.open_store(), settings.workspace, settings.storage_options, self._rules())

    def _rules(self) -> ReuseRules:
        from tidemark.results.model.answers import ReuseRules

        most = whole_number_of("most_mebibytes", self.most_mebibytes) or 1
        return ReuseRules(
            most_answer_bytes=most * _MEBIBYTE,
            normalise=flag_of("normalise", self.normalise),
            moved_rows_count=flag_of("moved_rows_count", self.moved_rows_count),
        )

    def _session(self) -> dict[str, str]:
        """The settings of the session that a job has, and those of the task."""
        from tidemark.model.spark import DELTA_SETTINGS

        return {**DELTA_SETTINGS, **self.hook.settings.spark_conf, **_settings_of("settings", self.settings)}

    def _locate(self, context: Context) -> Callable[[str], str]:
        """A table by its name. A job asks the catalog for a name that only it knows, once."""
        return partial(_uri, self, context)

    def _result(self, answer: QueryAnswer) -> dict[str, Any]:
        from tidemark.results.worker.queries import plain_rows

        most = whole_number_of("most_rows", self.most_rows) or 0
        written = answer.written
        return {
            "origin": answer.origin,
            "why": answer.why,
            "key": answer.key,
            "columns": list(answer.columns),
            "rows": answer.rows,
            "location": None if written is None else written.location,
            "files": [] if written is None else list(written.files),
            "data": plain_rows(answer, self.hook.settings.storage_options, most=most),
            "tables": {leaf.name: leaf.version for leaf in answer.tables},
        }


def _uri(operator: CachedQueryOperator, context: Context, name: str) -> str:
    from tidemark.sql.table_names import table_name

    if table_name(name).only_in_catalog:
        return operator.table_by_name(context, name, anew=False).path
    return operator.hook.table_uri(name)


def _query_of(argument: str, sql: str) -> str:
    """The text of a query that can be kept. Raises InvalidArgument, QueryNotReusable."""
    from tidemark.errors import QueryNotReusable
    from tidemark.results.model.answers import Miss
    from tidemark.results.planning.queries import read_query

    if not isinstance(sql, str) or not sql.strip():
        raise InvalidArgument(argument=argument, value=sql, problem="give one query")
    query = read_query(sql)
    if isinstance(query, Miss):
        raise QueryNotReusable(why=query.why.value, problem=query.text, sql=sql.strip())
    return sql


def _settings_of(argument: str, value: Mapping[str, str] | None) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgument(argument=argument, value=value, problem="give settings by name")
    known = {True: "true", False: "false"}
    return {str(name): known.get(one, str(one)) if isinstance(one, bool) else str(one) for name, one in value.items()}
