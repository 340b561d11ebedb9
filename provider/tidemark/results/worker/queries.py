"""A query of a task: its answer from the cache, from the log, or from a job that Spark runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from tidemark.errors import (
    AnswerDamaged,
    CatalogTableMoved,
    QueryNotReusable,
    StorageRefused,
    StorageUnreachable,
)
from tidemark.model.statements import TransactionKey
from tidemark.results.model.answers import Leaf, Miss, WrittenAnswer
from tidemark.results.model.jobs import RUN_QUERY, QueryRequest
from tidemark.results.planning.queries import read_query
from tidemark.results.planning.settings import affecting, difference
from tidemark.results.worker.asking import Asked, ViewsAmong, ask, from_log, under_settings
from tidemark.results.worker.cache import Hit, ResultCache, keep, look_up
from tidemark.results.worker.files import AnswerLost, OpenAnswer, remove_directory, titles_of
from tidemark.results.worker.tables import Locate
from tidemark.sql.table_names import in_catalogs
from tidemark.streams.worker.catalog import forget_moved
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import list_streams

__all__ = ["QueryAnswer", "answer_query", "plain_rows"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class QueryAnswer:
    """The answer of a query. `origin`: `cache`, `log` or `spark`. `why`: the reason why Spark ran it. `written`: its
    files; None for an answer from the log, whose only row is `values`.
    """

    origin: str
    why: str
    key: str
    tables: tuple[Leaf, ...]
    columns: tuple[str, ...]
    rows: int
    written: WrittenAnswer | None = None
    values: tuple[Any, ...] = ()


def answer_query(
    cache: ResultCache,
    sql: str,
    *,
    settings: Mapping[str, str],
    locate: Locate,
    views: ViewsAmong,
    runtime: Callable[[], Runtime],
    key: TransactionKey,
    use_cached_result: bool = True,
) -> QueryAnswer:
    """The answer of the query. A job runs it only if neither the cache nor the log has it; `runtime` is asked then.

    A second run is a hit, if no table has changed. Without `use_cached_result` a new answer replaces the old one.
    Raises QueryNotReusable for a query whose answer cannot be kept, InvalidArgument, CatalogTableMoved, and errors of
    jobs.
    """
    asked = _asked(cache, sql, affecting(settings), locate, views)
    if not use_cached_result:
        return _run(cache, sql, asked, runtime(), key, why="use_cached_result is False")
    known = from_log(asked)
    if not isinstance(known, str):
        return QueryAnswer("log", "", asked.key, asked.leaves, known.titles, 1, values=known.values)
    found = look_up(cache, asked)
    if isinstance(found, Hit):
        return _answer("cache", "", asked, found.answer.written)
    return _run(cache, sql, asked, runtime(), key, why=found.text)


def _asked(cache: ResultCache, sql: str, settings: Mapping[str, str], locate: Locate, views: ViewsAmong) -> Asked:
    query = read_query(sql)
    if isinstance(query, Miss):
        raise _refusal(sql, query)
    asked = ask(
        query,
        settings=settings,
        locate=locate,
        options=cache.options,
        rules=cache.rules,
        now=cache.store.clock(),
        streams=frozenset(stream.name.lower() for stream in list_streams(cache.store)),
        views=views,
    )
    if isinstance(asked, Miss):
        raise _refusal(sql, asked)
    return asked


def _run(cache: ResultCache, sql: str, asked: Asked, runtime: Runtime, key: TransactionKey, *, why: str) -> QueryAnswer:
    log.info("Spark runs the query: %s.", why)
    paths = in_catalogs({leaf.name: leaf.path for leaf in asked.leaves})
    request = QueryRequest(asked.pinned, cache.new_directory(), dict(asked.settings), asked.titled, paths)
    try:
        report = runtime.run_job(RUN_QUERY, request, key=key)
    except CatalogTableMoved as error:
        forget_moved(cache.store, error)
        raise
    if report.written is None:
        problem = f"no file keeps the type of {report.unstored} exactly"
        raise QueryNotReusable(why="type", problem=problem, sql=sql)
    others = difference(asked.settings, report.settings)
    if others:
        log.warning(
            "The job's session has settings that the task does not know (%s), so the next task cannot reuse this"
            " answer. Add them to the argument `settings`, or to spark_conf of the connection.",
            ", ".join(others),
        )
    kept = keep(cache, under_settings(asked, report.settings), report.written, replace=why.startswith("use_"))
    if isinstance(kept, Miss) or kept.written.location != report.written.location:
        _remove_unused(cache, report.written.location)
    if isinstance(kept, Miss):
        raise _refusal(sql, kept)
    return _answer("spark", why, asked, kept.written)


def _remove_unused(cache: ResultCache, location: str) -> None:
    """Remove files that no answer has. `airflow tidemark clean` removes what stays."""
    try:
        remove_directory(location, cache.options)
    except (StorageRefused, StorageUnreachable) as error:
        log.warning("An answer that is not kept was not removed: %s", error)


def _answer(origin: str, why: str, asked: Asked, written: WrittenAnswer) -> QueryAnswer:
    columns = titles_of(written.schema_json)
    return QueryAnswer(origin, why, asked.key, asked.leaves, columns, written.rows, written)


def _refusal(sql: str, miss: Miss) -> QueryNotReusable:
    return QueryNotReusable(why=miss.why.value, problem=miss.text, sql=sql.strip())


def plain_rows(answer: QueryAnswer, options: Mapping[str, Any], *, most: int) -> list[list[Any]] | None:
    """The rows as JSON can have them; None if there are more. Decimals, dates and times are texts, bytes hexadecimal.
    NaN and infinities are texts, too.

    Raises StorageRefused, and AnswerDamaged for files that are gone or garbled.
    """
    if answer.rows > most:
        return None
    if answer.written is None:
        return [_plain(answer.values)]
    try:
        opened = OpenAnswer(answer.written, options)
    except AnswerLost as error:
        raise AnswerDamaged(location=answer.written.location, problem=str(error)) from error
    columns = [column.to_pylist() for column in opened.table().columns]
    return [_plain(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # as Spark's to_json
    return str(value) if isinstance(value, Decimal) else value
