"""Making streams on views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument, StreamExists
from tidemark.operators._base import flag_of, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator
from tidemark.operators.streams import facts_of_stream
from tidemark.streams.planning.arguments import mode_of, version_or_time
from tidemark.streams.planning.names import require_name

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.model.streams import BaseOffset, Stream, StreamMode, TableRef
    from tidemark.model.views import ViewQuery

__all__ = ["CreateViewStreamOperator"]


class CreateViewStreamOperator(SparkOperator):
    """Creates a stream on a view of Spark's catalog, or keeps an existing one and its offset (R70–R79).

    A job asks Spark what the view reads. All jobs must see the catalog: a metastore, or that of a Spark Connect server.
    A second run finds the stream and changes nothing. Raises ViewRefused with the place in the text, ViewTextMissing
    for a temporary view, and RowTrackingDisabled for a base table. Raises StreamExists if a stream of that name reads
    something else.

    :param stream: name of the stream. (templated)
    :param on: name of the view in Spark's catalog. (templated)
    :param mode: `standard` (net changes) or `append_only` (inserted rows, as they were inserted). (templated)
    :param show_initial_rows: the first consumption delivers the rows that the view has at the stream's start.
        (templated)
    :param at: where to start: a time with a zone; None is now. A version says nothing here, for each base table has its
        own. (templated)
    :param or_replace: begin a new stream even if there is one: its place is lost, at every run. (templated)
    :param beyond_snowflake: the view may group, use DISTINCT, and have outer, semi and anti joins. (templated)
    :param comment: shown with the stream. (templated)
    """

    template_fields: Sequence[str] = (
        "stream", "on", "mode", "show_initial_rows", "at", "or_replace", "beyond_snowflake", "comment", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        stream: str,
        on: str,
        mode: str = "standard",
        show_initial_rows: bool | str = False,
        at: str | datetime | None = None,
        or_replace: bool | str = False,
        beyond_snowflake: bool | str = False,
        comment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.on = on
        self.mode = mode
        self.show_initial_rows = show_initial_rows
        self.at = at
        self.or_replace = or_replace
        self.beyond_snowflake = beyond_snowflake
        self.comment = comment
        check_constants(
            self,
            stream=lambda argument, name: require_name(name, argument),
            mode=_mode_of_view,
            at=_moment_of,
            show_initial_rows=flag_of,
            or_replace=flag_of,
            beyond_snowflake=flag_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The stream as it stands: {stream, table, mode, version, created}; `version` sums those of the base tables."""
        from tidemark.streams.worker import streams

        mode, moment = _mode_of_view("mode", self.mode), _moment_of("at", self.at)
        view, tables = self._resolved(context)
        store = self.hook.open_store()
        known = {stream.name.casefold(): stream for stream in streams.list_streams(store)}
        kept = known.get(self.stream.casefold())
        if kept is not None and not flag_of("or_replace", self.or_replace):
            return self._keep(kept, view, mode)
        bases = [self._start(table, moment) for table in tables]
        made = streams.create_stream(
            store,
            name=self.stream,
            source=_named(self.on, view),
            mode=mode,
            at_version=sum(base.version for base in bases),
            initial_rows=flag_of("show_initial_rows", self.show_initial_rows),
            or_replace=flag_of("or_replace", self.or_replace),
            comment=self.comment,
            who=str(key_of(context)),
            view=view,
            view_bases=bases,
        )
        places = ", ".join(f"{base.table.name} at version {base.version}" for base in bases)
        self.log.info("Created stream %s on view %s: %s.", made.name, self.on, places)
        return facts_of_stream(made, created=True)

    def _resolved(self, context: Context) -> tuple[ViewQuery, tuple[TableRef, ...]]:
        from tidemark.operators._jobs import resolve_view

        beyond = flag_of("beyond_snowflake", self.beyond_snowflake)
        found = resolve_view(self.runtime(), self.on, beyond_snowflake=beyond, key=key_of(context))
        return found.query, found.bases

    def _start(self, table: TableRef, moment: datetime | None) -> BaseOffset:
        """The table's place, if a stream can read it there. Raises RowTrackingDisabled, TrackingInterrupted (R8g)."""
        from tidemark.changes.worker.sources import require_stream_source, require_tracked_at
        from tidemark.model.streams import BaseOffset

        log = self.hook.open_table(table)
        require_stream_source(log, table.name)
        version = log.head() if moment is None else log.version_at(moment)
        require_tracked_at(log, table.name, version, stream=self.stream)
        return BaseOffset(table, version)

    def _keep(self, kept: Stream, view: ViewQuery, mode: StreamMode) -> dict[str, Any]:
        if kept.view is None or kept.view.digest != view.digest or kept.mode is not mode:
            raise StreamExists(stream=kept.name, source=f"{kept.source.name} ({kept.mode.value})")
        self.log.info("Stream %s is there already.", kept.name)
        return facts_of_stream(kept, created=False)


def _named(name: str, view: ViewQuery) -> TableRef:
    from tidemark.model.streams import Addressing, TableRef

    return TableRef(name=name, path="", table_id=view.digest, addressing=Addressing.CATALOG)


def _moment_of(argument: str, value: str | datetime | None) -> datetime | None:
    if value is None or str(value).strip().lower() in ("", "none"):
        return None
    asked = version_or_time(argument, value)
    if isinstance(asked, int):
        problem = "the tables of a view have a version each; give a time with a zone"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return asked


def _mode_of_view(_: str, value: str) -> StreamMode:
    from tidemark.changes.planning.source_keys import require_fitting_mode

    mode = mode_of(value)
    require_fitting_mode(mode, (), on_view=True)
    return mode
