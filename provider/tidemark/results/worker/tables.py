"""The tables of a query, by their logs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemark.errors import LakeError, NotADeltaTable, SourceError, TidemarkError
from tidemark.lake.content_versions import content_at, content_of
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.foreign_json import parsed
from tidemark.model.table_log import TableState
from tidemark.results.model.answers import Leaf, Miss, ReuseRules, Why
from tidemark.results.planning.queries import Query, TablePoint
from tidemark.results.worker.zones import zone_of
from tidemark.sql.statements import path_name

__all__ = ["FoundTable", "Locate", "column_names", "find_tables", "pinned_sql"]

Locate = Callable[[str], str]
"""The canonical URI of a table by its name. Raises SourceError, InvalidArgument."""

_OF_A_CATALOG = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
_IS_A_VIEW = "it is a view"

Found = Mapping[tuple[str, TablePoint | None], "FoundTable"]


@dataclass(frozen=True)
class FoundTable:
    """A table at the version that a query reads."""

    leaf: Leaf
    log: DeltaLog
    state: TableState


def find_tables(
    query: Query, locate: Locate, options: Mapping[str, Any], rules: ReuseRules, time_zone: str
) -> Found | Miss:
    """Each table of the query at its version, in the order of the text, or the reason why one is not found.

    A log that cannot be read is such a reason: who may not read a table gets no answer from it.
    """
    found: dict[tuple[str, TablePoint | None], FoundTable] = {}
    for use in query.uses:
        name, point = use.mention.name, use.point
        if (name, point) in found:
            continue
        try:
            log = DeltaLog.open(locate(name), options)
            state = log.state(None if point is None else _version(log, point, time_zone))
            found[name, point] = _at(name, log, state, rules)
        except _NoVersion as error:
            return Miss(Why.TIME_TRAVEL, f"{name}: {error}")
        except NotADeltaTable as error:
            is_view = error.facts.get("problem") == _IS_A_VIEW
            return Miss(Why.VIEW if is_view else Why.NOT_A_TABLE, _text(error))
        except (SourceError, LakeError, TidemarkError) as error:
            return Miss(Why.NOT_A_TABLE, _text(error))
        if found[name, point].state.protocol.reader_features and _OF_A_CATALOG.intersection(
            found[name, point].state.protocol.reader_features
        ):
            return Miss(Why.NOT_A_TABLE, f"the commits of {name} are in a catalog, not in its log alone")
    return found


class _NoVersion(ValueError):
    """The reason why a point of a table is not reused."""


def _at(name: str, log: DeltaLog, state: TableState, rules: ReuseRules) -> FoundTable:
    version = state.version
    content = content_at(log, version) if rules.moved_rows_count else content_of(log, version)
    leaf = Leaf(name, log.uri, state.table_id, version, content.version, content.digest)
    return FoundTable(leaf, log, state)


def _version(log: DeltaLog, point: TablePoint, time_zone: str) -> int:
    if point.version is not None:
        return point.version
    when = _moment(str(point.time), time_zone)
    version = log.version_at(when)
    if version == log.head() and log.timestamp(version) < when:
        raise _NoVersion("the time is after its last commit")
    return version


def _moment(text: str, time_zone: str) -> datetime:
    zone = zone_of(time_zone)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise _NoVersion(f"the time {text!r} is not written as 2026-01-31 12:00:00") from error
    if moment.tzinfo is not None:
        return moment
    if zone is None:
        raise _NoVersion(f"the time zone {time_zone!r} is not known here")
    return moment.replace(tzinfo=zone)


def _text(error: TidemarkError) -> str:
    return str(error).splitlines()[0]


def pinned_sql(found: Found, name: str, point: TablePoint | None) -> str:
    """The table at its version, in Spark's SQL."""
    leaf = found[name, point].leaf
    return f"{path_name(leaf.path)} VERSION AS OF {leaf.version}"


def column_names(found: Found) -> frozenset[str]:
    """The names of all columns of the tables, and of the fields in them, in lower case."""
    names: set[str] = set()
    for table in found.values():
        waiting = [parsed(table.state.metadata.schema_json)]
        while waiting:
            kind = waiting.pop()
            if isinstance(kind, dict):
                fields = kind.get("fields") or ()
                names.update(str(field["name"]).lower() for field in fields)
                waiting += [field["type"] for field in fields]
                waiting += [kind[part] for part in ("elementType", "keyType", "valueType") if part in kind]
    return frozenset(names)
