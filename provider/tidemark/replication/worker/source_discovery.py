"""A look at a source database without a replication: its tables, and which of them can be replicated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    FoundObject,
    Hinders,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
    SourceProblem,
)
from tidemark.replication.model.source_discovery import DiscoveredTable, SourceDiscovery
from tidemark.replication.planning.selection import mode_of, require_patterns, select, unmatched, unmatched_excludes
from tidemark.replication.sources.open import Source
from tidemark.replication.worker.discovery import missing_from_log

__all__ = ["discover_source"]

_NAME = "tidemark_discovery"  # of a slot and a publication that are never made
_OF_TABLES = (Hinders.TABLE, Hinders.BACKFILL)
_OPTIONS = ReplicationOptions(target="discovery")


def discover_source(
    source: Source, kind: SourceKind, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> SourceDiscovery:
    """The tables that the patterns name, all by default, with their columns, keys, rows and problems.

    A pattern is `schema` or `schema.table`. The problems are those that would keep a new replication of these tables
    from starting. Nothing is made in the source. Raises InvalidArgument for another pattern, SourceUnreachable,
    SourceRefused, SourceDriverNotInstalled.
    """
    require_patterns("include", include, columns=False)
    require_patterns("exclude", exclude, columns=False)
    selection = Selection(tuple(include), tuple(exclude))
    imagined = _imagined(kind, selection)
    everything = source.discover(imagined)
    selected = select(selection, everything, options=imagined.options)
    problems = source.problems(imagined, selected)
    of_tables = _by_table(problems)
    unknown = (*unmatched(selection, everything), *unmatched_excludes(selection, everything))
    return SourceDiscovery(
        kind=kind,
        system_id=source.system_id(),
        names=source.names(),
        tables=tuple(_table(kind, one, of_tables.get(one.source_id, ())) for one in selected),
        problems=tuple(one.text for one in problems if one.hinders not in _OF_TABLES),
        notices=tuple(f"The source has nothing that is named {pattern}." for pattern in unknown),
    )


def _imagined(kind: SourceKind, selection: Selection) -> Replication:
    """A replication that nobody stores, as the requests to a source are about one."""
    return Replication(
        uid=_NAME,
        name=_NAME,
        kind=kind,
        source_conn_id="",
        selection=selection,
        options=_OPTIONS,
        event_log="",
        slot=_NAME,
        publication=_NAME,
        state=ReplicationState.NOT_STARTED,
        created_at=datetime.min.replace(tzinfo=UTC),
    )


def _by_table(problems: Sequence[SourceProblem]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for problem in problems:
        if problem.hinders in _OF_TABLES:
            for source_id in problem.source_ids:
                found[source_id].append(problem.text)
    return found


def _table(kind: SourceKind, one: FoundObject, problems: Sequence[str]) -> DiscoveredTable:
    return DiscoveredTable(
        name=one.name,
        schema=one.schema,
        rows=one.rows,
        mode=mode_of(_OPTIONS, one.name, one.schema),
        problems=((one.unsupported,) if one.unsupported is not None else tuple(problems)),
        notices=(*missing_from_log(one), *_without_key(kind, one)),
    )


def _without_key(kind: SourceKind, one: FoundObject) -> Iterator[str]:
    """A PostgreSQL refuses such a table, or has its rows in the log by an identity of their own."""
    if kind.logs_by_file and not one.schema.keys and one.unsupported is None:
        schema, table = (part.replace("`", "``") for part in (one.name.schema, one.name.table))
        yield (
            f"{one.name.text} has no key: its target is a log of rows by default, and one session makes its copy. For a"
            f" mirror that is copied in parallel: ALTER TABLE `{schema}`.`{table}` ADD PRIMARY KEY (…)"
        )
