"""Letting a stream continue after its table was recreated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.streams import StreamMode
from tidemark.operators._base import flag_of, key_of, unless_left_out
from tidemark.operators._constants import check_constants
from tidemark.operators._plans import names_of
from tidemark.operators._spark import SparkOperator
from tidemark.operators.streams import facts_of_stream

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.model.streams import Stream, TableRef
    from tidemark.streams.model.sources import Source

__all__ = ["RebaseStreamOperator"]


class RebaseStreamOperator(SparkOperator):
    """Puts an unreadable stream onto the newest version of a table or view: `on`, or that at its source's place. Name,
    mode, comment, counts and history stay; the history says who did it, why, and what was left.

    The unread changes of its old table are lost, unless `keys` let the tables be compared. For targets it is another
    stream: exactly once starts again from here. A retry or a clear finds it re-based and changes nothing. A stream on a
    view stays on a view, and a job asks Spark what that reads.

    Raises RebaseRefused if it can still be read, was only moved, or cannot be compared by key. Raises TransactionOpen
    while a transaction holds it. Raises RowTrackingDisabled, UnsupportedTableFeature, TableNotFound and NotADeltaTable
    for a table that cannot have a stream, and ViewRefused and ViewTextMissing for a view.

    :param stream: name of the stream. (templated)
    :param why: the reason, for the stream's history; it may not be empty. (templated)
    :param on: another table: a path, `schema.table` under the lake root, or `catalog.schema.table` of Spark's catalog;
        None: where the source lay. For a stream on a view, another view. (templated)
    :param keys: compare by these columns from now on. If the logs have the last known state, the difference to it is
        delivered first. CREATE OR REPLACE keeps a log. (templated)
    :param show_initial_rows: deliver the rows of the new table or view first. (templated)
    :param force: re-base even a stream that can still be read; its unread changes are lost. (templated)
    """

    template_fields: Sequence[str] = ("stream", "why", "on", "keys", "show_initial_rows", "force", "conn_id")

    def __init__(
        self,
        *,
        stream: str,
        why: str,
        on: str | None = None,
        keys: str | Sequence[str] = (),
        show_initial_rows: bool | str = False,
        force: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.why = why
        self.on = on
        self.keys = keys
        self.show_initial_rows = show_initial_rows
        self.force = force
        check_constants(self, why=_reason_of, keys=names_of, show_initial_rows=flag_of, force=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The stream as it stands afterwards: {stream, table, mode, version, created}."""
        from tidemark.streams.worker.points import offsets_now
        from tidemark.streams.worker.rebase import Ground, rebase_stream
        from tidemark.streams.worker.streams import get_stream

        _reason_of("why", self.why)
        store = self.hook.open_store()
        old = get_stream(store, self.stream)
        keys = names_of("keys", self.keys)
        source = self._source(old, keys)
        rebased = rebase_stream(
            store,
            self.stream,
            Ground(source.ref, offsets_now(source, self.hook.open_table), source.view),
            who=str(key_of(context)),
            why=self.why,
            keys=source.keys if keys else (),
            show_initial_rows=flag_of("show_initial_rows", self.show_initial_rows),
            force=flag_of("force", self.force),
            repeatable=True,
            tables=self.hook.open_table,
        )
        if rebased.after == rebased.before:
            self.log.info("This task has already re-based stream %s.", old.name)
        else:
            self.log.warning("Stream %s left version %s behind: %s", old.name, old.offset.version, self.why)
        return facts_of_stream(rebased.after, created=False)

    def _source(self, old: Stream, keys: Sequence[str]) -> Source:
        """The table or view that is at that place now, ready to be read."""
        from tidemark.hooks.stream_sources import stream_sources
        from tidemark.streams.model.sources import table_source
        from tidemark.streams.worker.defining import StreamRequest, prepared

        if old.view is None:
            return prepared(table_source(self._table(old)), self.hook.open_table, keys=keys or old.keys)
        asked = StreamRequest(old.name, self._on() or old.source.name, on_view=True, beyond_snowflake=True)
        return prepared(stream_sources(self.hook, self.runtime).find(asked), self.hook.open_table, keys=keys)

    def _on(self) -> str | None:
        return unless_left_out(self.on)

    def _table(self, old: Stream) -> TableRef:
        """The table that is at that place now."""
        from tidemark.streams.worker.catalog import asking_the_catalog

        if old.mode is StreamMode.INSERT_ONLY:
            return self.hook.external_table(self._on() or old.source.name)
        if (on := self._on()) is not None:
            return asking_the_catalog(self.hook.table, self.runtime)(on)
        return replace(old.source, table_id=self.hook.open_table(old.source).state().table_id)


def _reason_of(argument: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument=argument, value=value, problem="say why the stream may leave its table")
    return value
