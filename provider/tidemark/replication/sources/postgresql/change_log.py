"""A slot's messages of pgoutput, with their places in the log: by SQL functions, or by the replication protocol.

Both give the same messages and leave the slot where it is: messages are read again until the slot is moved. Of the two
the functions begin sooner, but the server first keeps all that they answer on its disk. The protocol sends message by
message, for a transaction of any size.
"""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidemark.replication.planning.positions import lsn_of, lsn_text
from tidemark.replication.sources.postgresql.names import quoted

if TYPE_CHECKING:
    import psycopg2

    from tidemark.replication.model.replication import LogPosition

__all__ = ["read_by_functions", "read_by_protocol"]

_FIRST_ROWS, _MOST_ROWS = 10, 1000  # in one answer of the server
_BYTES_AT_ONCE = 4 << 20
_HAS_MESSAGES = 140000  # from this version on pgoutput passes on what pg_logical_emit_message wrote
_SECONDS_BETWEEN_LOOKS = 0.2
_NEVER = 10.0 * 365 * 86400  # seconds
_PEEK = """
SELECT (lsn - '0/0')::bigint, data
FROM pg_logical_slot_peek_binary_changes(%(slot)s, %(until)s::pg_lsn, NULL, VARIADIC %(options)s)
"""
_ALIVE = "SET wal_sender_timeout = 0"
_WRITES_MEANWHILE = "SET LOCAL idle_in_transaction_session_timeout = '10min'"  # to the lake, between two answers


def read_by_functions(
    connection: psycopg2.extensions.connection, slot: str, publication: str, until: LogPosition
) -> Iterator[tuple[int, bytes]]:
    """All messages of transactions that commit before `until`, perhaps of one more. `connection`: without autocommit.

    Raises what psycopg2 does.
    """
    connection.cursor().execute(_WRITES_MEANWHILE)
    cursor = connection.cursor(name="tidemark_changes")
    cursor.itersize = _FIRST_ROWS
    options = [text for pair in _options(connection, publication).items() for text in pair]
    cursor.execute(_PEEK, {"slot": slot, "until": lsn_text(lsn_of(until)), "options": options})
    rows = size = 0
    for lsn, data in cursor:
        yield lsn, bytes(data)
        rows, size = rows + 1, size + len(data)
        if rows == cursor.itersize:  # the next answer has about as many bytes as we want to hold
            cursor.itersize = max(1, min(_MOST_ROWS, _BYTES_AT_ONCE * rows // size))
            rows = size = 0
    cursor.close()


def read_by_protocol(
    connection: psycopg2.extensions.connection, slot: str, publication: str, start: LogPosition, until: LogPosition
) -> Iterator[tuple[int, bytes]]:
    """All messages of transactions that commit in [start, until), perhaps of some more. `connection`: of replication.

    Nothing is ever sent back: psycopg2 would confirm places of its own choice. So the server is set to wait without
    signs of life, and TCP's signs show it whether we live. Raises what psycopg2 does.
    """
    import psycopg2.extras

    end = lsn_of(until)
    cursor: Any = connection.cursor()
    cursor.execute(_ALIVE)
    cursor.start_replication(
        slot_name=slot,
        slot_type=psycopg2.extras.REPLICATION_LOGICAL,
        start_lsn=lsn_of(start),
        options=_options(connection, publication),
        decode=False,
        status_interval=_NEVER,
    )
    while True:
        message = cursor.read_message()
        if message is not None:
            yield message.data_start, message.payload
        elif cursor.wal_end >= end:  # said behind all that was sent before
            return
        else:
            select.select([connection], [], [], _SECONDS_BETWEEN_LOOKS)


def _options(connection: psycopg2.extensions.connection, publication: str) -> dict[str, str]:
    messages = {"messages": "true"} if connection.server_version >= _HAS_MESSAGES else {}
    return {"proto_version": "1", "publication_names": quoted(publication), **messages}
