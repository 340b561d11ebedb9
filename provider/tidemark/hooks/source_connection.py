"""The source that a replication reads, by an Airflow connection. A database has one of its own type (`postgres`,
`mysql`, `mariadb`). Landed envelopes have one of the type `debezium` or `generic`. Event files have one of the type
`event_files`, or `generic` with the extra `kind`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import PORTS, SourceAddress, SourceKind

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["address_of", "kind_at", "source_address"]

_KINDS: Mapping[str, SourceKind] = {
    "postgres": SourceKind.POSTGRESQL,
    "postgresql": SourceKind.POSTGRESQL,
    "mysql": SourceKind.MYSQL,
    "mariadb": SourceKind.MARIADB,
}

PASSED_ON = frozenset(
    {
        "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "gssencmode", "krbsrvname",
        "target_session_attrs", "options", "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout",
    }
)  # fmt: skip
"""Extras that are parameters of the client of a PostgreSQL, and of the JDBC driver of its backfills."""

PASSED_ON_TO_MYSQL = frozenset({"ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "connect_timeout"})
"""Those of the client of a MySQL or MariaDB. Airflow's own `ssl`, a dictionary of `ca`, `cert`, `key`, is read, too."""

HASH_SECRET = "hash_secret"
"""The extra with the secret of column hashes. Airflow masks extras with such a name."""

LEFT_TO_AIRFLOW = frozenset(
    {"cursor", "application_name", "sqlalchemy_scheme", "sqlalchemy_query", "charset", "client", "local_infile"}
)
"""Extras of the same connection that other hooks use, and that are ignored here."""


def source_address(conn_id: str) -> SourceAddress:
    """The connection's address for a job's environment. Airflow's masker gets its password and its hash secret, in each
    form in which they may be written.

    Raises AirflowNotFoundException for a missing connection, InvalidArgument as `address_of`.
    """
    from airflow.sdk import BaseHook

    from tidemark.hooks._origins import extra_of
    from tidemark.hooks._secrets import mask

    connection = BaseHook.get_connection(conn_id)
    mask(connection.password or "")
    mask(_secret(extra_of(connection)) or "")
    return address_of(connection)


def kind_at(address: SourceAddress) -> SourceKind:
    """The kind of database at the address. A connection of type `mysql` may be that of a MariaDB, so the server is
    asked. Raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled.
    """
    if not address.kind.logs_by_file:
        return address.kind
    from tidemark.replication.sources.mysql.connection import dialect_at

    return dialect_at(address).kind


def address_of(connection: Connection) -> SourceAddress:
    """The address in the connection. Raises InvalidArgument for another type of connection, for one without user or
    database, and for an unknown extra. A MySQL or MariaDB needs no database.
    """
    kind = _KINDS.get(connection.conn_type or "")
    if is_of_event_files(connection):
        from tidemark.hooks._event_files_connection import event_files_address

        return event_files_address(connection)
    if connection.conn_type in ("debezium", "generic"):
        from tidemark.hooks._debezium_connection import debezium_address

        return debezium_address(connection)
    if kind is None:
        known = "postgres, mysql, debezium or event_files"
        raise _invalid(connection, f"its type is {connection.conn_type!r}; give one of type {known}")
    named = bool(connection.schema) or kind.logs_by_file
    if not connection.login or not named:
        missing = "login" if not connection.login else "schema, which is the name of the database"
        raise _invalid(connection, f"it lacks its {missing}")
    passed_on = PASSED_ON_TO_MYSQL if kind.logs_by_file else PASSED_ON
    extra = _with_tls(connection.extra_dejson) if kind.logs_by_file else connection.extra_dejson
    return SourceAddress(
        kind=kind,
        host=connection.host or "localhost",
        port=connection.port or PORTS[kind],
        database=connection.schema or "",
        user=connection.login,
        password=connection.password or None,
        parameters=_parameters(connection, extra, passed_on),
        hash_secret=_secret(connection.extra_dejson),
        conn_id=connection.conn_id,
    )


def is_of_event_files(connection: Connection) -> bool:
    """Whether the connection leads to a folder of event files."""
    kind = SourceKind.EVENT_FILES.value
    return connection.conn_type == kind or (
        connection.conn_type == "generic" and connection.extra_dejson.get("kind") == kind
    )


def _with_tls(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The extras, with those of the dictionary `ssl` by names of their own."""
    own = extra.get("ssl")
    more = {f"ssl_{name}": own[name] for name in ("ca", "cert", "key") if name in own} if isinstance(own, dict) else {}
    return {**more, **{name: value for name, value in extra.items() if name != "ssl" or not isinstance(own, dict)}}


def _parameters(connection: Connection, extra: Mapping[str, Any], passed_on: frozenset[str]) -> dict[str, str]:
    unknown = sorted(set(extra) - passed_on - LEFT_TO_AIRFLOW - {HASH_SECRET})
    asked = [name for name in unknown if extra[name] not in (None, "", False)]
    if asked:
        known = ", ".join(sorted({*passed_on, HASH_SECRET}))
        raise _invalid(
            connection, f"its extra {', '.join(asked)} is not supported here. Remove it; supported are: {known}"
        )
    return {name: _text(value) for name, value in extra.items() if name in passed_on and value not in (None, "")}


def _secret(extra: Mapping[str, Any]) -> str | None:
    value = extra.get(HASH_SECRET)
    return None if value in (None, "") else str(value)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _invalid(connection: Connection, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="source_conn_id", value=connection.conn_id, problem=problem)
