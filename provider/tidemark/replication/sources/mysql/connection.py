"""A connection to a MySQL or a MariaDB: settings under which a value has one text, and errors of our tree."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from tidemark.errors import SourceDriverNotInstalled, SourceRefused
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.mysql.dialects import Dialect, dialect_of
from tidemark.replication.sources.mysql.failures import connect_failure, failures_named, source_text

if TYPE_CHECKING:
    import pymysql

__all__ = ["SESSION", "Connection", "connect", "dialect_at", "is_encrypted", "open_connection", "rows_of", "ssl_mode"]

Connection: TypeAlias = "pymysql.connections.Connection"

SESSION = {  # whatever user, database or server say: one text for each value, and no session waits for long
    "time_zone": "'+00:00'",
    "sql_mode": "'NO_ENGINE_SUBSTITUTION'",
    "lock_wait_timeout": "5",
    "innodb_lock_wait_timeout": "5",
    "net_write_timeout": "600",
    "wait_timeout": "28800",  # a capture's session is idle while Spark works, and holds nothing
    "group_concat_max_len": "1048576",
}
_VERIFIED = {"REQUIRED": ssl.CERT_NONE, "VERIFY_CA": ssl.CERT_REQUIRED, "VERIFY_IDENTITY": ssl.CERT_REQUIRED}
READ_TIMEOUT = 120  # seconds without a byte of the server, after which it counts as gone


@contextmanager
def connect(
    address: SourceAddress, *, timeout: timedelta = timedelta(seconds=15), read_timeout: int = READ_TIMEOUT
) -> Iterator[Connection]:
    """A PyMySQL connection in autocommit, closed at the end; its errors come out as SourceUnreachable or SourceRefused.

    Its session is in UTC, in utf8mb4, and read-only. Raises SourceDriverNotInstalled, too.
    """
    connection = open_connection(address, timeout, read_timeout)
    try:
        with failures_named(address):
            settings = ", ".join(f"{name} = {value}" for name, value in SESSION.items())
            with connection.cursor() as cursor:
                cursor.execute(f"SET SESSION {settings}")
                cursor.execute("SET SESSION TRANSACTION READ ONLY")
            yield connection
    finally:
        connection.close()


def open_connection(address: SourceAddress, timeout: timedelta, read_timeout: int) -> Connection:
    """A connection without settings of a session. Raises outside of `except`, so that no traceback reaches frames that
    hold a password.
    """
    driver = _driver()
    try:
        return driver.connect(**_keywords(address, timeout, read_timeout))
    except (driver.err.Error, OSError, UnicodeError, RuntimeError) as error:
        failure = connect_failure(error, address)
    raise failure


def rows_of(
    connection: Connection, query: str, values: Mapping[str, object] | tuple[object, ...] = ()
) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())


def dialect_at(address: SourceAddress) -> Dialect:
    """Which of the two databases is at the address, by asking it. Raises what `connect` does, and SourceRefused."""
    with connect(address) as connection:
        return dialect_of(connection.get_server_info())


def is_encrypted(connection: Connection) -> bool:
    """Whether the session has TLS."""
    return any(cipher for _, cipher in rows_of(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'"))


def ssl_mode(parameters: Mapping[str, str]) -> str:
    """As the client of MySQL has it. A file of authorities without a mode is meant to be used."""
    return parameters.get("ssl_mode", "").upper() or ("VERIFY_CA" if "ssl_ca" in parameters else "PREFERRED")


def _driver() -> Any:
    try:
        import pymysql
    except ImportError as error:
        raise SourceDriverNotInstalled(
            kind="MySQL or MariaDB", package="PyMySQL", command="pip install 'airflow-provider-tidemark[mysql]'"
        ) from error
    return pymysql


def _keywords(address: SourceAddress, timeout: timedelta, read_timeout: int) -> dict[str, Any]:
    return {
        "host": address.host,
        "port": address.port,
        "database": address.database,
        "user": address.user,
        "password": address.password or "",
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": max(2, int(float(address.parameters.get("connect_timeout", timeout.total_seconds())))),
        "read_timeout": read_timeout,
        "write_timeout": read_timeout,
        "program_name": "tidemark",
        "local_infile": False,
        **_tls(address.parameters, source_text(address)),
    }


def _tls(parameters: Mapping[str, str], source: str) -> dict[str, Any]:
    """`ssl_mode` as the client of MySQL has it; PREFERRED, which is the default, encrypts where the server does."""
    mode = ssl_mode(parameters)
    if mode == "DISABLED":
        return {"ssl_disabled": True}
    if mode == "PREFERRED":
        return {}
    if mode not in _VERIFIED:
        known = ", ".join(("DISABLED", "PREFERRED", *_VERIFIED))
        remedy = f"Give the connection one of {known} as ssl_mode."
        raise SourceRefused(source=source, what="the connection", problem=f"ssl_mode {mode} is unknown", remedy=remedy)
    context = ssl.create_default_context(cafile=parameters.get("ssl_ca"))
    context.check_hostname = mode == "VERIFY_IDENTITY"
    context.verify_mode = _VERIFIED[mode]
    if "ssl_cert" in parameters:
        context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    return {"ssl": context}
