"""The user's request for a chunk's records, parsed at the edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.change_streams.model.change_streams import ChangeStream, WatchedTable
from tidemark.change_streams.model.sinks import SinkKind
from tidemark.errors import InvalidArgument, MissingMergeKey

__all__ = ["SinkRequest", "keys_of_sink", "kind_of_sink", "named_table", "parse_sink"]

_KINDS = "it is append, merge, or a function as module:function"


@dataclass(frozen=True)
class SinkRequest:
    """A sink whose target is still a name."""

    kind: SinkKind
    target: str | None
    table_id: str | None
    keys: tuple[str, ...]
    function: str | None
    alone: bool = False


def parse_sink(
    stream: ChangeStream,
    *,
    write_as: str,
    target: str | None = None,
    table: str | None = None,
    keys: str | Sequence[str] = (),
    before: Sequence[WatchedTable] = (),
) -> SinkRequest:
    """`before`: tables that the stream does not watch any more and may have records of; they have to be named.

    Raises InvalidArgument for what does not go together, MissingMergeKey for keys that are not the table's.
    """
    kind, name = kind_of_sink(write_as, target), write_as.strip()
    wanted = keys_of_sink(kind, keys)
    watched = _watched(stream, table, before)
    if kind is SinkKind.MERGE:
        _require_one_table(stream, watched, table)
        if watched is not None and wanted and {k.lower() for k in wanted} != {k.lower() for k in watched.keys}:
            problem = f"the records of {watched.table.name} know rows by {', '.join(watched.keys)} alone"
            raise MissingMergeKey(target=target, problem=problem)
    of_one = watched if table or kind is SinkKind.MERGE else None
    return SinkRequest(
        kind=kind,
        target=target,
        table_id=None if of_one is None else of_one.table.table_id,
        keys=wanted,
        function=name if kind is SinkKind.FUNCTION else None,
        alone=kind is SinkKind.MERGE and not table,
    )


def kind_of_sink(write_as: str, target: str | None) -> SinkKind:
    """How the records are written: a table's name, as long as it is needed, goes with it. Raises InvalidArgument."""
    if not isinstance(write_as, str):
        raise InvalidArgument(argument="write_as", value=write_as, problem=_KINDS)
    name = write_as.strip()
    kind = SinkKind.FUNCTION if ":" in name else _kind(name)
    if (kind is SinkKind.FUNCTION) == bool(target):
        problem = "a function writes where it likes" if target else f"{name} needs a table to write"
        raise InvalidArgument(argument="target", value=target, problem=problem)
    return kind


def keys_of_sink(kind: SinkKind, keys: str | Sequence[str]) -> tuple[str, ...]:
    """The key columns, also as a text with commas. Raises InvalidArgument."""
    given = keys.split(",") if isinstance(keys, str) else keys
    if not isinstance(given, Sequence) or not all(isinstance(key, str) for key in given):
        raise InvalidArgument(argument="keys", value=keys, problem="columns are a list of names")
    wanted = tuple(key.strip() for key in given if key.strip())
    if wanted and kind is not SinkKind.MERGE:
        raise InvalidArgument(argument="keys", value=wanted, problem="only a merge has keys")
    return wanted


def _kind(name: str) -> SinkKind:
    try:
        return SinkKind(name.lower())
    except ValueError as error:
        raise InvalidArgument(argument="write_as", value=name, problem=_KINDS) from error


def named_table(tables: Iterable[WatchedTable], name: str) -> WatchedTable | None:
    """The first one of exactly that name or path, else the only one in another case. None: there is none, or several
    differ in case alone.
    """
    known, asked = tuple(tables), name.casefold()
    exact = next((one for one in known if name in (one.table.name, one.table.path)), None)
    alike = [one for one in known if asked in (one.table.name.casefold(), one.table.path.casefold())]
    if exact is not None or not alike:
        return exact
    first = alike[0].table
    return alike[0] if all(one.table.is_table(first.path, first.table_id) for one in alike) else None


def _watched(stream: ChangeStream, table: str | None, before: Sequence[WatchedTable]) -> WatchedTable | None:
    """The watched table of that name; the only one if no name is given."""
    if not table:
        return stream.tables[0] if len(stream.tables) == 1 and not stream.everything else None
    found = named_table((*stream.tables, *before), table)
    if found is not None:
        return found
    known = ", ".join(watched.table.name for watched in stream.tables) or "none"
    problem = f"change stream {stream.name} does not watch it; it watches {known}"
    raise InvalidArgument(argument="table", value=table, problem=problem)


def _require_one_table(stream: ChangeStream, watched: WatchedTable | None, table: str | None) -> None:
    if watched is None:
        watches = "several tables" if stream.tables or stream.everything else "no table now"
        problem = f"change stream {stream.name} watches {watches}; a merge takes the records of one: name it"
        raise InvalidArgument(argument="table", value=table, problem=problem)
