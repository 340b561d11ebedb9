"""SHOW CHANNELS, and the system functions of channels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemark.sql.names import sql_name
from tidemark.sql.text import BLANK, Cursor

__all__ = ["ChannelStatement", "PauseIngest", "SetOffsetToken", "ShowChannels", "parse_channel_sql"]

_SHOW = re.compile(rf"{BLANK}SHOW\s+CHANNELS\b", re.DOTALL | re.IGNORECASE)
_SET = "SYSTEM$SNOWPIPE_STREAMING_UPDATE_CHANNEL_OFFSET_TOKEN"
_PAUSE = "SYSTEM$PAUSE_INGEST"
_CALL = re.compile(rf"{BLANK}SELECT\s+({re.escape(_SET)}|{re.escape(_PAUSE)})\s*\(", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class ShowChannels:
    """SHOW CHANNELS [LIKE 'pattern'] [IN ACCOUNT | DATABASE d | SCHEMA s | TABLE t]."""

    like: str | None = None
    database: str | None = None
    schema: str | None = None
    table: str | None = None


@dataclass(frozen=True)
class SetOffsetToken:
    """SELECT SYSTEM$SNOWPIPE_STREAMING_UPDATE_CHANNEL_OFFSET_TOKEN('table', 'channel', 'token')."""

    table: str
    channel: str
    token: str | None


@dataclass(frozen=True)
class PauseIngest:
    """SELECT SYSTEM$PAUSE_INGEST('table', seconds)."""

    table: str
    seconds: int


ChannelStatement = ShowChannels | SetOffsetToken | PauseIngest


def parse_channel_sql(text: str) -> ChannelStatement | None:
    """The statement, if it is one of channels. Raises SqlCompilationError with the place in the text."""
    if _SHOW.match(text):
        return _show(Cursor(text))
    call = _CALL.match(text)
    if call is None:
        return None
    cursor = Cursor(text)
    cursor.needs("SELECT", call[1].upper(), "(")
    statement = _set(cursor) if call[1].upper() == _SET else _pause(cursor)
    cursor.needs(")")
    cursor.end()
    return statement


def _show(cursor: Cursor) -> ShowChannels:
    cursor.needs("SHOW", "CHANNELS")
    like = cursor.string("a pattern in quotes") if cursor.takes("LIKE") else None
    found: dict[str, str] = {}
    if cursor.takes("IN"):
        kind = cursor.one_of("ACCOUNT", "DATABASE", "SCHEMA", "TABLE").lower()
        if kind != "account":
            name = cursor.name(f"the name of a {kind}")
            found[kind] = sql_name(name) if kind == "table" else name.text
    cursor.end()
    return ShowChannels(like, **found)


def _set(cursor: Cursor) -> SetOffsetToken:
    table = cursor.string("the name of the table in quotes")
    cursor.needs(",")
    channel = cursor.string("the name of the channel in quotes")
    cursor.needs(",")
    token = None if cursor.takes("NULL") else cursor.string("the offset token in quotes, or NULL")
    return SetOffsetToken(table, channel, token)


def _pause(cursor: Cursor) -> PauseIngest:
    table = cursor.string("the name of the table in quotes")
    cursor.needs(",")
    return PauseIngest(table, cursor.whole_number("a number of seconds"))
