"""Streams that continue after their table was recreated or moved, from a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.client.context import ClientContext
from tidemark.client.descriptions import StreamDescription, look_and_describe
from tidemark.client.sources import find_files, find_source
from tidemark.errors import TableNotFound
from tidemark.model.streams import Stream, StreamMode
from tidemark.streams.planning.arguments import names_of
from tidemark.streams.worker.points import offsets_now
from tidemark.streams.worker.rebase import Ground, rebase_stream, relocate_stream
from tidemark.streams.worker.streams import get_stream

__all__ = ["RebasedStreams"]


class RebasedStreams:
    """The part of `Lake` that puts a stream onto another table, or follows its own."""

    _context: ClientContext

    def rebase_stream(
        self,
        name: str,
        *,
        why: str,
        on: str | None = None,
        keys: str | Sequence[str] = (),
        show_initial_rows: bool = False,
        enable_row_tracking: bool = False,
        force: bool = False,
    ) -> StreamDescription:
        """Put an unreadable stream onto the newest version of another source: `on`, or the one at its source's name or
        path. It keeps its name, mode, comment and history, which says who and why.

        `keys`: it compares by them from now on. The next window is the difference between its last known state and the
        new table, or the view now. This needs the logs, which CREATE OR REPLACE keeps. `show_initial_rows`: the next
        window has the rows of the new table or view. With `force` also a stream that can still be read. For targets it
        is another stream: exactly once starts again from here. Raises RebaseRefused, TransactionOpen, InvalidArgument,
        and what `create_stream` raises.
        """
        context = self._context
        old = get_stream(context.store, name)
        by = names_of("keys", keys) or (old.keys if old.view is None else ())
        if old.mode is StreamMode.INSERT_ONLY:
            source = find_files(context, on or old.source.name)
        else:
            source = find_source(
                context,
                on or _where_it_was(context, old),
                enable_row_tracking=enable_row_tracking,
                beyond_snowflake=True,
                keys=by,
            )
        rebased = rebase_stream(
            context.store,
            name,
            Ground(source.ref, offsets_now(source, context.tables), source.view),
            who=context.who,
            why=why,
            keys=source.keys if keys else (),
            show_initial_rows=show_initial_rows,
            force=force,
            tables=context.tables,
        )
        return look_and_describe(context, rebased.after)

    def relocate_stream(self, name: str, *, to: str, why: str = "") -> StreamDescription:
        """Follow a table that was renamed or moved: the stream keeps its place and all else (R90). A second call
        changes nothing. Raises RelocationRefused if another table is at that place, TableNotFound, NotADeltaTable.
        """
        context = self._context
        moved = relocate_stream(context.store, name, context.tables.reference(to), who=context.who, why=why)
        return look_and_describe(context, moved)


def _where_it_was(context: ClientContext, stream: Stream) -> str:
    """The source's name, or its path where the name leads nowhere any more."""
    try:
        if not context.tables.is_view(stream.source.name):
            context.tables.locate(stream.source.name)
    except TableNotFound:
        return stream.source.path or stream.source.name
    return stream.source.name
