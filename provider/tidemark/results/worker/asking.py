"""A query with everything that its answer depends on, and its answer from the log alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from tidemark.lake.live_files import live_files
from tidemark.model.table_log import Protocol
from tidemark.results.model.answers import TIME_ZONE, Leaf, Miss, ReuseRules, Why
from tidemark.results.planning.extrema import LogQuery, NotExact, answer_of, log_query, spark_type
from tidemark.results.planning.keys import key_of
from tidemark.results.planning.qualifiers import unclear
from tidemark.results.planning.queries import Query, normalised, pinned
from tidemark.results.worker.tables import FoundTable, Locate, column_names, find_tables, pinned_sql
from tidemark.results.worker.zones import zone_of

__all__ = ["Asked", "LogAnswer", "ViewsAmong", "ask", "from_log", "under_settings"]

ViewsAmong = Callable[[Collection[str]], Collection[str]]
"""The names of materialized views and dynamic tables among the given ones, as they are given."""

_UNDERSTOOD = frozenset(
    {
        *("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview"),
        *("v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview", "variantShredding-preview"),
    }
)
_NEWEST_READER = 3
_FUNCTIONS_OF_SESSIONS = "spark.sql.functionResolution."  # by default Spark's own functions come first
_CASE_SENSITIVE = "spark.sql.caseSensitive"


@dataclass(frozen=True)
class Asked:
    """A query whose answer may be reused. `pinned`: its text over the tables at their versions. `titled`: the same
    with the user's own `current_date`, if the text has that.
    """

    text: str
    key: str
    settings: Mapping[str, str]
    leaves: tuple[Leaf, ...]
    tables: tuple[FoundTable, ...]
    today: date | None
    pinned: str
    titled: str | None
    aggregates: LogQuery | None


@dataclass(frozen=True)
class LogAnswer:
    """The only row of an answer from the log: titles, Spark's types, values."""

    titles: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[Any, ...]


def ask(
    query: Query,
    *,
    settings: Mapping[str, str],
    locate: Locate,
    options: Mapping[str, Any],
    rules: ReuseRules,
    now: datetime,
    streams: frozenset[str],
    views: ViewsAmong,
) -> Asked | Miss:
    """The query with its key, or the reason why no answer of it is reused. `settings`: those of the session that may
    change rows. `streams`: their names in lower case.
    """
    name = next((name for name in query.names if name.lower() in streams), None)
    if name is not None:
        return Miss(Why.STREAM, f"{name} is a stream, whose rows change with each commit and each read")
    view = next(iter(views(query.names)), None)
    if view is not None:
        return Miss(Why.VIEW, f"{view} is a view of the lake, whose kept table is not what its readers see")
    zone = settings.get(TIME_ZONE)
    if zone is None:
        return Miss(Why.SETTINGS, f"{TIME_ZONE} is not known before Spark has started; give it in session_settings")
    if any(name.startswith(_FUNCTIONS_OF_SESSIONS) for name in settings):
        return Miss(Why.SETTINGS, "functions of the session may hide Spark's own of the same name")
    today = _today(query, zone, now)
    if isinstance(today, Miss):
        return today
    found = find_tables(query, locate, options, rules, zone)
    if isinstance(found, Miss):
        return found
    unsure = _unsure(query, column_names(found))
    if unsure is not None:
        return unsure
    text = normalised(query.text) if rules.normalise else query.text
    leaves = tuple(table.leaf for table in found.values())
    names = {one: partial(pinned_sql, found, one) for one in query.names}
    return Asked(
        text=text,
        key=key_of(text, settings, leaves, today),
        settings=dict(settings),
        leaves=leaves,
        tables=tuple(found.values()),
        today=today,
        pinned=pinned(query, names, today),
        titled=None if today is None else pinned(query, names, None),
        aggregates=log_query(query),
    )


def _unsure(query: Query, columns: frozenset[str]) -> Miss | None:
    """The reason why a name may mean something else than the text alone says. `columns`: those of the tables."""
    if query.takes_date_for_column(columns):
        return Miss(Why.CLOCK, "current_date is also the name of a column; write current_date() for the date")
    unknown = query.no_column(columns)
    if unknown is not None:
        return Miss(Why.SESSION, f"{unknown} is not a column of the tables, so it may be a variable of the session")
    found = unclear(query.tree, query.unaliased, columns)
    if found is not None:
        name = ".".join(found[0].names)
        return Miss(Why.NOT_UNDERSTOOD, f"columns are qualified by {name}, and {found[1]}; give the table an alias")
    return None


def under_settings(asked: Asked, settings: Mapping[str, str]) -> Asked:
    """The same query under the settings that its session had."""
    key = key_of(asked.text, settings, asked.leaves, asked.today)
    return replace(asked, settings=dict(settings), key=key)


def _today(query: Query, zone: str, now: datetime) -> date | Miss | None:
    """The date of the session, if the query asks for it."""
    if not query.dates:
        return None
    known = zone_of(zone)
    if known is None:
        return Miss(Why.CLOCK, f"the query asks for the date in the zone {zone!r}, which is not known here")
    return now.astimezone(known).date()


def from_log(asked: Asked) -> LogAnswer | str:
    """The answer from statistics of the log, or the reason why the log does not have it. Raises SourceError,
    LakeError.
    """
    if asked.aggregates is None:
        return "it is more than count(*), min and max of one table"
    table = asked.tables[0]
    if not _is_understood(table.state.protocol):
        return "the table has a feature that this release does not know"
    metadata, aggregates = table.state.metadata, asked.aggregates.aggregates
    sensitive = asked.settings.get(_CASE_SENSITIVE, "false").lower() == "true"
    try:
        types = tuple(spark_type(one, metadata, case_sensitive=sensitive) for one in aggregates)
        files = live_files(table.log, table.leaf.version)
        values = answer_of(aggregates, metadata, files, case_sensitive=sensitive)
    except NotExact as error:
        return str(error)
    return LogAnswer(tuple(one.title for one in aggregates), types, values)


def _is_understood(protocol: Protocol) -> bool:
    return protocol.min_reader_version <= _NEWEST_READER and _UNDERSTOOD.issuperset(protocol.reader_features)
