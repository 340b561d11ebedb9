"""Tables that change streams write themselves: what one watched of them would come back to it, without end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.model.sinks import KnownSink
from tidemark.errors import InvalidArgument
from tidemark.model.streams import TableRef

__all__ = ["OwnTables", "require_target"]


@dataclass(frozen=True)
class OwnTables:
    """`logs`: those of all change streams, their names by path; `sinks`: what groups of the one in question write.
    `partials`: path and id of each table that a view has made for its partial aggregates.
    """

    logs: Mapping[str, str]
    sinks: tuple[KnownSink, ...] = ()
    partials: frozenset[tuple[str, str]] = frozenset()

    def is_partial(self, table: TableRef) -> bool:
        """Whether a view has made it for itself; a user's table with such a name is none."""
        return (table.path, table.table_id) in self.partials

    def why_not(self, table: TableRef, *, everything: bool) -> str | None:
        """Why it cannot be watched; None: it can. A table that only ended groups wrote may be watched by name. With FOR
        ALL (`everything`) its whole history would come back.
        """
        if table.path in self.logs:
            return f"{table.name} is the log of change stream {self.logs[table.path]}"
        asked = (one for one in self.sinks if everything or one.live)
        sink = next((one for one in asked if table.is_table(one.table_path, one.table_id)), None)
        if sink is None:
            return None
        wrote = "writes" if sink.live else "wrote"
        return (
            f"consumer group {sink.group!r} of this change stream {wrote} {table.name}: its records would come back to"
            " it, without end"
        )


def require_target(stream: ChangeStream, own: OwnTables, target: TableRef, *, of_table: str | None = None) -> None:
    """Say nothing if a group of the stream can write this table. `of_table`: the id of the table whose records it gets.

    A group can write a table that FOR ALL watches; the stream then watches it no longer. Raises InvalidArgument.
    """
    problem = None
    if target.path in own.logs:
        problem = f"it is the log of change stream {own.logs[target.path]}, which capture alone writes"
    elif of_table == target.table_id:
        problem = "it is the table whose records are read; they would change it again"
    elif not stream.everything and any(one.table.is_table(target.path, target.table_id) for one in stream.tables):
        problem = (
            f"change stream {stream.name} watches it, so each row that a group writes there becomes a new record, "
            "without end. Write another table, or remove this one from the watch list (ALTER CHANGE STREAM … SET FOR "
            "…)"
        )
    if problem is not None:
        raise InvalidArgument(argument="target", value=target.name, problem=problem)
