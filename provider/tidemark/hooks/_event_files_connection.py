"""A folder of event files, by an Airflow connection of the type `event_files`, or `generic` with that extra `kind`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.hooks._debezium_connection import known_extras, named_keys, storage_of
from tidemark.model.source_address import SourceAddress, SourceKind

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["EXTRAS", "event_files_address"]

EXTRAS = frozenset(
    {"kind", "location", "files_conn_id", "storage_options", "begin", "keys", "wait_seconds", "hash_secret"}
)
_PARAMETERS = ("begin", "wait_seconds")


def event_files_address(connection: Connection) -> SourceAddress:
    """The address in the connection. Secrets of the connection that it names for a bucket are masked.

    Raises InvalidArgument for an extra that is unknown, missing or no JSON. The same for a named connection of another
    type; AirflowNotFoundException if it does not exist.
    """
    from tidemark.hooks._secrets import require_no_password

    extra = known_extras(connection, EXTRAS)
    location = str(extra.get("location") or "").strip()
    if not location:
        problem = "it lacks the extra location: the directory or bucket with a folder for each object"
        raise InvalidArgument(argument="source_conn_id", value=connection.conn_id, problem=problem)
    require_no_password("location", location)
    said = {name: str(extra[name]) for name in _PARAMETERS if name in extra}
    named = str(extra.get("files_conn_id") or "").strip()
    secret = extra.get("hash_secret")
    return SourceAddress(
        kind=SourceKind.EVENT_FILES,
        host="",
        port=0,
        database=location,
        user="",
        parameters={
            **said,
            "storage_options": storage_of(connection, extra, named),
            "keys": named_keys(connection, extra),
        },
        hash_secret=None if secret is None else str(secret),
        conn_id=connection.conn_id,
    )
