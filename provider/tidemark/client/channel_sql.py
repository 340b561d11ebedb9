"""Statements about channels in `lake.sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.channels.planning.sql import PauseIngest, SetOffsetToken, ShowChannels, parse_channel_sql
from tidemark.client.sql_answers import status_answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.channels import ChannelsOfALake
    from tidemark.client.context import ClientContext

__all__ = ["run_channel_sql"]

_SHOWN = (
    "created_on TIMESTAMP, name STRING, database_name STRING, schema_name STRING, table_name STRING,"
    " client_sequencer BIGINT, row_sequencer BIGINT, offset_token STRING, opened_on TIMESTAMP, opened_by STRING,"
    " last_ingest TIMESTAMP, age INTERVAL DAY TO SECOND, rows_inserted BIGINT, rows_parsed BIGINT,"
    " rows_error_count BIGINT, last_error_message STRING, last_error_offset_upper_bound STRING,"
    " last_error_timestamp TIMESTAMP, latency_ms BIGINT, problem STRING"
)
_NAMES = tuple(column.split()[0] for column in _SHOWN.split(","))


def run_channel_sql(lake: ChannelsOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement about channels; None for any other. Raises what `Lake.sql` says."""
    statement = parse_channel_sql(text)
    match statement:
        case None:
            return None
        case ShowChannels():
            return _shown(lake, context, statement)
        case SetOffsetToken():
            lake.set_channel_offset_token(statement.table, statement.channel, statement.token)
            return status_answer(context.spark, f"Offset token of channel {statement.channel} is set.")
        case PauseIngest():
            until = lake.pause_ingest(statement.table, statement.seconds)
            return status_answer(context.spark, f"Table {statement.table} takes no rows until {until:%H:%M:%S} UTC.")


def _shown(lake: ChannelsOfALake, context: ClientContext, show: ShowChannels) -> DataFrame:
    found = lake.show_channels(like=show.like, table=show.table)
    rows = [
        tuple(getattr(channel, name) for name in _NAMES)
        for channel in found
        if _same(show.database, channel.database_name) and _same(show.schema, channel.schema_name)
    ]
    return context.spark.createDataFrame(rows, _SHOWN)


def _same(wanted: str | None, actual: str) -> bool:
    return wanted is None or wanted.casefold() == actual.casefold()
