"""Channels from a notebook: the ingest client, and what tables say of their channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.engines import engine_of
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.planning.listing import ShownChannel, shown_channel
from tidemark.channels.worker.tables import channels_of
from tidemark.client.channel_histories import channel_history, file_migrations
from tidemark.client.context import ClientContext
from tidemark.client.ingest_service import ServiceClient
from tidemark.client.lake_tables import lake_tables
from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import location_of
from tidemark.sql.like import like_pattern
from tidemark.sql.table_names import table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ChannelsOfALake"]


class ChannelsOfALake:
    """The part of `Lake` that writes rows through channels. Their names are found in any case."""

    _context: ClientContext

    def ingest_client(
        self,
        name: str,
        *,
        max_client_lag: str | int = "1 second",
        only_writer: bool = False,
        hadoop: Mapping[str, str] | None = None,
    ) -> IngestClient:
        """A client that opens channels; `name` is what other writers see of it. Rows are committed within the lag.

        `max_client_lag`: "N", "N seconds" or "N minutes", from 1 second to 10 minutes. It commits in the JVM of the
        Spark session. Behind Spark Connect it starts a small JVM of its own, with the session's settings of file
        systems and log stores. `hadoop`: further ones, by Hadoop's names. `only_writer`: nobody else
        writes the tables, which S3 needs without a log store that coordinates commits. Raises InvalidArgument, and
        IngestUnavailable if no JVM can be started.
        """
        context = self._context
        return IngestClient(
            name,
            engine_of(context.spark, hadoop, start=_own_engine),
            lambda table: context.tables.locate(table)[0],
            locate_new=lambda table: _located_new(context, table),
            options=context.options,
            max_client_lag=max_client_lag,
            only_writer=only_writer,
            clock=context.store.clock,
        )

    def ingest_service(self, url: str, token: str) -> ServiceClient:
        """A client that sends rows to the ingest service at a URL, with a writer's token. It needs no JVM.

        Raises IngestUnavailable without the extra `ingest`.
        """
        return ServiceClient(url, token)

    def show_channels(self, *, like: str | None = None, table: str | None = None) -> tuple[ShownChannel, ...]:
        """The channels of all tables, or of one, by table and name. `like` knows % and _ and no case.

        Raises TableNotFound for a table that was named.
        """
        pattern = None if like is None else like_pattern(like)
        return tuple(
            shown
            for name in ([table] if table is not None else lake_tables(self._context).names())
            for shown in self._channels(name)
            if pattern is None or pattern.fullmatch(shown.name)
        )

    def channel_history(self, table: str) -> DataFrame:
        """The history of the table's channels: a row for each channel and minute with commits, kept for 30 days.

        Columns: table_name, created_on, channel_name, channel_created_on, opened_by, client_sequencer, row_sequencer,
        end_offset_token, rows_inserted, rows_parsed, rows_error_count, latency_ms, last_error_message,
        last_error_offset_upper_bound, last_error_timestamp. Counts are those since the row before, or NULL if it is
        not kept any more. Raises TableNotFound.
        """
        return channel_history(self._context, table)

    def file_migrations(self, table: str) -> DataFrame:
        """The times when small files of the table became large ones: table_name, ended_on, version, files_removed,
        bytes_removed, files_added, bytes_added. Raises TableNotFound.
        """
        return file_migrations(self._context, table)

    def set_channel_offset_token(self, table: str, channel: str, token: str | None) -> None:
        """Give a channel another committed offset token. Its writer is not fenced. Raises ChannelNotFound."""
        with self.ingest_client(self._context.who) as client:
            client.set_offset_token(channel, table, token)

    def pause_ingest(self, table: str, seconds: float) -> datetime:
        """Let nobody commit rows of channels to the table for some seconds, so that a DELETE, UPDATE or MERGE succeeds.

        Rows wait in the buffers of their clients. Returns once no row is committed any more, with the end, UTC. Raises
        InvalidArgument, ChangeNotCommitted.
        """
        with self.ingest_client(self._context.who) as client:
            return client.pause(table, seconds)

    def drop_channel(self, table: str, channel: str) -> None:
        """Remove a channel with its token, also from a writer that has it open. A second run does nothing."""
        with self.ingest_client(self._context.who) as client:
            client.drop_channel(channel, table)

    def _channels(self, table: str) -> Iterator[ShownChannel]:
        uri, _ = self._context.tables.locate(table)
        now = self._context.store.clock()
        for key, record in channels_of(DeltaLog.open(uri, self._context.options), table).items():
            yield shown_channel(key, record, _names(table), now)


def _located_new(context: ClientContext, name: str) -> str:
    """The path of a table that may not exist: by its path, or below the lake root."""
    try:
        return context.tables.locate(name)[0]
    except TableNotFound:
        if table_name(name).path is None and context.lake_root is None:
            raise
        return location_of(name, context.lake_root or "/")[0]


_own_engines: dict[tuple[tuple[str, str], ...], KernelEngine] = {}


def _own_engine(hadoop: Mapping[str, str]) -> KernelEngine:
    """One JVM for this process, not one for each client; another if it has died."""
    key = tuple(sorted(hadoop.items()))
    known = _own_engines.get(key)
    if known is None or not known.is_alive():
        _own_engines[key] = start_engine(hadoop)
    return _own_engines[key]


def _names(table: str) -> dict[str, Any]:
    """Database, schema and name of a table; a path is the name."""
    meant = table_name(table)
    if meant.path is not None:
        return {"database": "", "schema": "", "table": meant.path}
    *outer, name = meant.parts
    return {"database": outer[-2] if len(outer) > 1 else "", "schema": outer[-1] if outer else "", "table": name}
