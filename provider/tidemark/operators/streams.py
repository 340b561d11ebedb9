"""Making, dropping and moving streams."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import (
    StreamNotFound,
)
from tidemark.model.streams import Stream
from tidemark.operators._base import TidemarkOperator, flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator
from tidemark.streams.planning.arguments import end_of, mode_of, reason_of, start_of
from tidemark.streams.planning.names import require_stream_name

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.streams.worker.defining import StreamRequest

__all__ = ["AdvanceStreamOperator", "CreateStreamOperator", "DropStreamOperator", "facts_of_stream"]


class CreateStreamOperator(SparkOperator):
    """Creates a stream on a Delta table or an external table, or keeps an existing one and its offset.

    For a table without row tracking, or one that is reloaded as a whole, see `CreateKeyedStreamOperator`.

    A second run finds the stream and changes nothing. Raises StreamExists if a stream of that name reads another table
    or in another mode. Raises RowTrackingDisabled, UnsupportedTableFeature, TableNotFound, NotADeltaTable,
    StreamOnStream or ExternalTableNotFound if the source cannot have a stream.

    :param stream: name of the stream. (templated)
    :param on: its table: a path, `schema.table` under the lake root, `catalog.schema.table`, or the name of an external
        table. A job asks Spark's catalog for the third. (templated)
    :param mode: `standard` (net changes), `append_only` (inserted rows, as they were inserted) or `every_change` (the
        changes of each commit). An external table has `insert_only`; see "Take every change". (templated)
    :param show_initial_rows: the first consumption delivers the rows that the table has at the stream's start.
        (templated)
    :param at: where to start: a version, or a time with a zone; None is the newest version. (templated)
    :param enable_row_tracking: turn row tracking on if it is off; makes up to three commits on the table, by a job.
        (templated)
    :param or_replace: begin a new stream even if one exists. Each run then loses the offset. (templated)
    :param comment: shown with the stream. (templated)
    """

    template_fields: Sequence[str] = (
        "stream", "on", "mode", "show_initial_rows", "at", "enable_row_tracking", "or_replace", "comment", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        stream: str,
        on: str,
        mode: str = "standard",
        show_initial_rows: bool | str = False,
        at: int | str | datetime | None = None,
        enable_row_tracking: bool | str = False,
        or_replace: bool | str = False,
        comment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.on = on
        self.mode = mode
        self.show_initial_rows = show_initial_rows
        self.at = at
        self.enable_row_tracking = enable_row_tracking
        self.or_replace = or_replace
        self.comment = comment
        check_constants(
            self,
            stream=lambda argument, name: require_stream_name(name, argument),
            mode=lambda _, mode: mode_of(mode),
            at=start_of,
            show_initial_rows=flag_of,
            enable_row_tracking=flag_of,
            or_replace=flag_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The stream as it stands: {stream, table, mode, version, created}."""
        from functools import partial

        from tidemark.hooks.stream_sources import stream_sources
        from tidemark.streams.worker.defining import create_stream

        tracked = flag_of("enable_row_tracking", self.enable_row_tracking)
        made = create_stream(
            self.hook.open_store(),
            self._request(),
            who=str(key_of(context)),
            sources=stream_sources(
                self.hook,
                self.runtime,
                key=key_of(context),
                turn_on=partial(self.turn_on_row_tracking, context) if tracked else None,
            ),
        )
        stream, version = made.stream, made.stream.offset.version
        if made.created:
            self.log.info("Created stream %s on %s at version %s.", stream.name, stream.source.name, version)
        else:
            self.log.info("Stream %s exists already; its offset is version %s.", stream.name, version)
        return facts_of_stream(stream, created=made.created)

    def _request(self) -> StreamRequest:
        from tidemark.streams.worker.defining import IfExists, StreamRequest

        replaced = flag_of("or_replace", self.or_replace)
        return StreamRequest(
            name=self.stream,
            on=self.on,
            mode=mode_of(self.mode),
            at=start_of("at", self.at),
            initial_rows=flag_of("show_initial_rows", self.show_initial_rows),
            if_exists=IfExists.REPLACE if replaced else IfExists.KEEP_SAME,
            comment=self.comment,
        )


class DropStreamOperator(TidemarkOperator):
    """Drops a stream; its history stays. Refused with TransactionOpen while a transaction holds it.

    :param stream: name of the stream. (templated)
    :param if_exists: accept a missing stream; False: StreamNotFound. (templated)
    """

    template_fields: Sequence[str] = ("stream", "if_exists", "conn_id")

    def __init__(self, *, stream: str, if_exists: bool | str = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.if_exists = if_exists
        check_constants(self, if_exists=flag_of)

    def execute(self, context: Context) -> bool:
        """Whether there was a stream to drop. A second run drops nothing."""
        from tidemark.streams.worker import streams

        try:
            streams.drop_stream(self.hook.open_store(), self.stream, who=str(key_of(context)))
        except StreamNotFound:
            if not flag_of("if_exists", self.if_exists):
                raise
            self.log.info("There is no stream %s.", self.stream)
            return False
        self.log.info("Dropped stream %s.", self.stream)
        return True


class AdvanceStreamOperator(TidemarkOperator):
    """Moves a stream's offset forward without delivering what it passes; who and why are kept in its history.

    Refused with TransactionOpen while a transaction holds the stream. A second run to the same place changes nothing. A
    stream on a view moves in each of its tables, so it takes `now` or a time. A version belongs to one table.

    :param stream: name of the stream. (templated)
    :param to: `now`, a version, or a time with a zone: the newest version at or before it. For a view: `now` or a time.
        (templated)
    :param why: the reason, for the stream's history; it may not be empty. (templated)
    """

    template_fields: Sequence[str] = ("stream", "to", "why", "conn_id")

    def __init__(self, *, stream: str, to: int | str | datetime, why: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.to = to
        self.why = why
        check_constants(self, to=end_of, why=reason_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The stream as it stands afterwards: {stream, table, mode, version, created}."""
        from tidemark.streams.worker.defining import advance_to

        before, after = advance_to(
            self.hook.open_store(),
            self.stream,
            end_of("to", self.to),
            who=str(key_of(context)),
            why=reason_of("why", self.why),
            tables=self.hook.open_table,
        )
        self.log.warning(
            "Stream %s passed over versions (%s, %s]: %s",
            after.name,
            before.offset.version,
            after.offset.version,
            self.why,
        )
        return facts_of_stream(after, created=False)


def facts_of_stream(stream: Stream, *, created: bool) -> dict[str, Any]:
    """The stream in plain values: {stream, table, mode, version, created}."""
    return {
        "stream": stream.name,
        "table": stream.source.name,
        "mode": stream.mode.value,
        "version": stream.offset.version,
        "created": created,
    }
