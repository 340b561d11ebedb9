"""SHOW CHANNELS and the system functions of channels, as text."""

from __future__ import annotations

import pytest

from tidemark.channels.planning.sql import PauseIngest, SetOffsetToken, ShowChannels, parse_channel_sql
from tidemark.errors import SqlCompilationError

SET = "SYSTEM$SNOWPIPE_STREAMING_UPDATE_CHANNEL_OFFSET_TOKEN"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SHOW CHANNELS", ShowChannels()),
        ("-- all\nshow channels;", ShowChannels()),
        ("SHOW CHANNELS LIKE 'ORD%' IN TABLE db.orders", ShowChannels("ORD%", table="db.orders")),
        ("SHOW CHANNELS IN ACCOUNT", ShowChannels()),
        ("SHOW CHANNELS IN SCHEMA db", ShowChannels(schema="db")),
        ("SHOW CHANNELS IN DATABASE lake", ShowChannels(database="lake")),
        (f"SELECT {SET}('db.orders', 'c', '7')", SetOffsetToken("db.orders", "c", "7")),
        (f"select {SET.lower()} ( 'db.orders', '\"c\"', NULL );", SetOffsetToken("db.orders", '"c"', None)),
        ("SELECT SYSTEM$PAUSE_INGEST('db.orders', 30)", PauseIngest("db.orders", 30)),
        ("SHOW STREAMS", None),
        ("SELECT * FROM channels", None),
        ("SELECT SYSTEM$STREAM_HAS_DATA('s')", None),
    ],
)
def test_statements_of_channels_are_known(text: str, statement: object) -> None:
    assert parse_channel_sql(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "SHOW CHANNELS LIKE orders",
        "SHOW CHANNELS IN VIEW v",
        "SHOW CHANNELS IN TABLE",
        "SHOW CHANNELS; SHOW CHANNELS",
        f"SELECT {SET}('db.orders', 'c')",
        f"SELECT {SET}('db.orders', 'c', 7)",
        "SELECT SYSTEM$PAUSE_INGEST('db.orders', 'long')",
    ],
)
def test_a_mistake_has_its_place_in_the_text(text: str) -> None:
    with pytest.raises(SqlCompilationError, match="line 1, column"):
        parse_channel_sql(text)
