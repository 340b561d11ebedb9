"""A connection to a PostgreSQL: settings under which a value has one text, and errors of our tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidemark.errors import SourceDriverNotInstalled
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.postgresql.failures import connect_failure, failures_named

if TYPE_CHECKING:
    import psycopg2

__all__ = ["SESSION", "connect"]

SESSION = {  # whatever role, database or server say: one text for each value, names with their schema, no surprise ends
    "datestyle": "ISO,YMD",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "3",
    "intervalstyle": "postgres",
    "xmlbinary": "base64",
    "search_path": "pg_catalog",
    "statement_timeout": "0",
    "lock_timeout": "5s",  # for the catalog; who may wait for a user's table says a shorter one
    "idle_in_transaction_session_timeout": "15s",  # a worker that stands still keeps no lock of a user's table
    "synchronous_commit": "local",
    "tcp_keepalives_idle": "60",  # the server's side of `_NETWORK`
    "tcp_keepalives_interval": "15",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "120000",
}
_NETWORK = {  # a peer that is gone is noticed within about two minutes
    "keepalives": "1",
    "keepalives_idle": "60",
    "keepalives_interval": "15",
    "keepalives_count": "4",
    "tcp_user_timeout": "120000",
}
_NEVER_WAITS_IDLE = 140000  # from this version on idle sessions can be ended


@contextmanager
def connect(
    address: SourceAddress,
    *,
    replication: bool = False,
    autocommit: bool = True,
    timeout: timedelta = timedelta(seconds=15),
) -> Iterator[psycopg2.extensions.connection]:
    """A psycopg2 connection, closed at the end; its errors come out as SourceUnreachable or SourceRefused.

    `replication`: one that speaks the replication protocol of this database (psycopg2's LogicalReplicationConnection,
    always autocommit). `timeout`: to open it, for each host that the name leads to. Without `autocommit` what was done
    is committed at the end, or rolled back on an error. Raises SourceDriverNotInstalled, too.
    """
    connection = _open(address, replication, timeout)
    try:
        with failures_named(address):
            if not replication:
                connection.autocommit = True
                if connection.server_version >= _NEVER_WAITS_IDLE:
                    connection.cursor().execute("SET idle_session_timeout = 0")
                connection.autocommit = autocommit
            yield connection
            if not replication and not autocommit:
                connection.commit()
    finally:
        connection.close()


def _open(address: SourceAddress, replication: bool, timeout: timedelta) -> psycopg2.extensions.connection:
    """Raises outside of `except`, so that no traceback reaches frames that hold a connection string."""
    psycopg2 = _driver()
    factory = psycopg2.extras.LogicalReplicationConnection if replication else None
    try:
        return psycopg2.connect(connection_factory=factory, **_keywords(address, timeout))
    except (psycopg2.Error, UnicodeError) as error:
        failure = connect_failure(error, address)
    raise failure


def _driver() -> Any:
    try:
        import psycopg2
        import psycopg2.extras
    except ImportError as error:
        raise SourceDriverNotInstalled(
            kind="PostgreSQL", package="psycopg2", command="pip install 'airflow-provider-tidemark[replication]'"
        ) from error
    return psycopg2


def _keywords(address: SourceAddress, timeout: timedelta) -> dict[str, str]:
    """For libpq. The user's parameters may change how the network is used, not what a value looks like."""
    settings = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
    more = address.parameters.get("options", "")
    return {
        **_NETWORK,
        "connect_timeout": str(max(2, int(timeout.total_seconds()))),
        **address.parameters,
        "host": address.host,
        "port": str(address.port),
        "dbname": address.database,
        "user": address.user,
        **({"password": address.password} if address.password else {}),
        "client_encoding": "UTF8",
        "application_name": "tidemark",
        "options": f"{more} {settings}".strip(),
    }
