"""Rows of a replayable source, through a channel into a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.channels.planning.sources import CONNECTION, OWN_SOURCES, require_source_options
from tidemark.errors import InvalidArgument
from tidemark.operators._base import flag_of, is_left_out, key_of, one_of, owner_of, seconds_of
from tidemark.operators._channels import channel_of, note_landing
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.channels.model.jobs import IngestRows
    from tidemark.model.source_connection import SourceConnection

__all__ = ["IngestRowsOperator"]

_CHANNEL_OPTIONS = (
    *("default_timezone", "evolve_schema", "max_client_lag", "quarantine", "strict_tokens", "verify_tokens"),
)
_ON_ERROR = ("abort", "continue", "skip_batch")


class IngestRowsOperator(SparkOperator):
    """Reads a source from the channel's committed offset token on, and commits its rows, each once.

    A source is a function `source(after_token, **source_options)` that yields (rows, token). From the same token on it
    yields the same rows again. A retry, a clear or the next run continues after the committed token, and fences an
    attempt that is still alive. Returns {table, channel, rows, errors, from_token, to_token, latency_ms, is_empty,
    last_error, skipped_rows}. Raises TableNotFound, TableNotSupported, RowsRefused, TokenOutOfOrder, ChannelInvalid,
    ChannelTokenLost, CommitsMayBeLost, StatementRefused for a source that cannot be imported, InvalidArgument.

    :param source: lines, kafka, sql, http, or `module:function` beside the DAG file. (templated)
    :param table: the table that gets the rows. (templated)
    :param channel: the channel's name; one for each partition of the source. (templated)
    :param source_options: further arguments of the source, by name. `conn_id` is an Airflow connection, which the
        source gets as `connection`. (templated)
    :param on_error: the handling of a row that does not fit: abort, continue or skip_batch. (templated)
    :param seconds: read for this time, including rows that arrive within it; None reads until the source is empty.
        (templated)
    :param channel_options: by name `evolve_schema`, `quarantine`, `default_timezone`, `max_client_lag`,
        `verify_tokens` ("numeric") and `strict_tokens`, as of a channel that is opened. (templated)
    :param only_writer: whether no other program writes the table. On S3 it must be True. (templated)
    """

    template_fields: Sequence[str] = (
        "source", "table", "channel", "source_options", "on_error", "seconds", "channel_options", "only_writer",
        "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        source: str,
        table: str,
        channel: str,
        source_options: Mapping[str, Any] | None = None,
        on_error: str = "abort",
        seconds: float | str | None = None,
        channel_options: Mapping[str, Any] | None = None,
        only_writer: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.table = table
        self.channel = channel
        self.source_options = source_options
        self.on_error = on_error
        self.seconds = seconds
        self.channel_options = channel_options
        self.only_writer = only_writer
        check_constants(
            self,
            source=_source_of,
            channel=channel_of,
            on_error=lambda name, value: one_of(_ON_ERROR, name, value),
            seconds=_seconds_of,
            channel_options=_channel_options_of,
            only_writer=flag_of,
            source_options=_options_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The report of the run."""
        from tidemark.channels.model.jobs import INGEST_ROWS
        from tidemark.model.codec import to_plain

        self.hook.table_uri(self.table)  # a typo is found before a JVM starts
        request = self._request(context)
        runtime = self.runtime(functions=True, source=self._connection(request))
        done = runtime.run_job(INGEST_ROWS, request, key=key_of(context))
        note_landing(self.hook, self.table, key_of(context), {"rows": done.rows, "errors": done.errors})
        if done.errors:
            self.log.warning("%s rows did not fit %s; the last: %s", done.errors, self.table, done.last_error)
        if done.skipped_rows:
            self.log.warning(
                "Batches with %s rows were skipped, and %s has none of them.", done.skipped_rows, self.table
            )
        self.log.info("%s rows are in %s; the token is %r.", done.rows, self.table, done.to_token)
        answer = {"table": self.table, "channel": self.channel, **to_plain(done)}
        for asset in self.outlets:
            context["outlet_events"][asset].extra = answer
        return answer

    def _connection(self, request: IngestRows) -> SourceConnection | None:
        from tidemark.hooks.rows_connection import rows_connection

        conn_id = (self.source_options or {}).get(CONNECTION)
        return None if conn_id is None else rows_connection(str(conn_id), request.source)

    def _request(self, context: Context) -> IngestRows:
        from tidemark.channels.model.jobs import IngestRows

        source = _source_of("source", self.source)
        options = _options_of("source_options", self.source_options)
        require_source_options(source, options)
        return IngestRows(
            lake_root=self.hook.settings.lake_root,
            table=self.table,
            channel=self.channel,
            source=source,
            writer=owner_of(context),
            options={name: value for name, value in options.items() if name != CONNECTION},
            on_error=one_of(_ON_ERROR, "on_error", self.on_error),
            seconds=_seconds_of("seconds", self.seconds),
            only_writer=flag_of("only_writer", self.only_writer),
            **_channel_options_of("channel_options", self.channel_options),
        )


def _source_of(argument: str, value: str) -> str:
    module, _, function = str(value).partition(":")
    is_function = all(part.isidentifier() for part in (*module.split("."), function))
    if value not in OWN_SOURCES and not is_function:
        problem = f"it must be {', '.join(OWN_SOURCES)}, or module:function"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return str(value)


def _options_of(argument: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidArgument(argument=argument, value=value, problem="it must be arguments by name")
    return dict(value or {})


def _channel_options_of(argument: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options, checked. Those with a template are checked when the task runs."""
    from tidemark.channels.planning.lag import lag_of
    from tidemark.channels.planning.tokens import require_verifier_name, verifier_of

    found = _options_of(argument, value)
    if unknown := sorted(set(found) - set(_CHANNEL_OPTIONS)):
        raise InvalidArgument(argument=argument, value=unknown, problem=f"known are {', '.join(_CHANNEL_OPTIONS)}")
    lag_of(found.get("max_client_lag", "1 second"))
    for flag in ("evolve_schema", "strict_tokens"):
        if flag in found:
            found[flag] = flag_of(flag, found[flag])
    require_verifier_name(found.get("verify_tokens"))
    verifier_of(found.get("verify_tokens"), strict=found.get("strict_tokens", False))
    return found


def _seconds_of(argument: str, value: float | str | None) -> float | None:
    if value is None or is_left_out(value):
        return None
    return seconds_of(argument, value).total_seconds()
