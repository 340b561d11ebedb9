"""The database that a replication reads, by an Airflow connection of its own type (`postgres`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceAddress, SourceKind

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["address_of", "source_address"]

_KINDS: Mapping[str, SourceKind] = {"postgres": SourceKind.POSTGRESQL, "postgresql": SourceKind.POSTGRESQL}
_PORTS: Mapping[SourceKind, int] = {SourceKind.POSTGRESQL: 5432}

PASSED_ON = frozenset(
    {
        "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "krbsrvname",
        "target_session_attrs", "options", "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout",
    }
)  # fmt: skip
"""Extras that are parameters of the database's own client."""

HASH_SECRET = "hash_secret"
"""The extra with the secret of column hashes. Airflow masks extras with such a name."""

LEFT_TO_AIRFLOW = frozenset({"cursor", "application_name", "sqlalchemy_scheme", "sqlalchemy_query"})
"""Extras of the same connection that other hooks use, and that are ignored here."""


def source_address(conn_id: str) -> SourceAddress:
    """The connection's address for a job's environment. Airflow's masker gets its password and its hash secret, in each
    form in which they may be written.

    Raises AirflowNotFoundException for a missing connection, InvalidArgument as `address_of`.
    """
    from airflow.sdk import BaseHook

    from tidemark.hooks._secrets import mask

    connection = BaseHook.get_connection(conn_id)
    mask(connection.password or "")
    mask(_secret(connection.extra_dejson) or "")
    return address_of(connection)


def address_of(connection: Connection) -> SourceAddress:
    """The address in the connection. Raises InvalidArgument for another type of connection, for one without user or
    database, and for an unknown extra.
    """
    kind = _KINDS.get(connection.conn_type or "")
    if kind is None:
        raise _invalid(connection, f"its type is {connection.conn_type!r}; give one of type postgres")
    if not connection.login or not connection.schema:
        missing = "login" if not connection.login else "schema, which is the name of the database"
        raise _invalid(connection, f"it lacks its {missing}")
    return SourceAddress(
        kind=kind,
        host=connection.host or "localhost",
        port=connection.port or _PORTS[kind],
        database=connection.schema,
        user=connection.login,
        password=connection.password or None,
        parameters=_parameters(connection, connection.extra_dejson),
        hash_secret=_secret(connection.extra_dejson),
        conn_id=connection.conn_id,
    )


def _parameters(connection: Connection, extra: Mapping[str, Any]) -> dict[str, str]:
    unknown = sorted(set(extra) - PASSED_ON - LEFT_TO_AIRFLOW - {HASH_SECRET})
    asked = [name for name in unknown if extra[name] not in (None, "", False)]
    if asked:
        known = ", ".join(sorted({*PASSED_ON, HASH_SECRET}))
        raise _invalid(
            connection, f"its extra {', '.join(asked)} is not supported here. Remove it; supported are: {known}"
        )
    return {name: _text(value) for name, value in extra.items() if name in PASSED_ON and value not in (None, "")}


def _secret(extra: Mapping[str, Any]) -> str | None:
    value = extra.get(HASH_SECRET)
    return None if value in (None, "") else str(value)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _invalid(connection: Connection, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="source_conn_id", value=connection.conn_id, problem=problem)
