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
_LEAST_WAIT, _LONGEST_WAIT = 2, 3600  # seconds for a connection to open


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
        "connect_timeout": _connect_timeout(address, timeout),
        "read_timeout": read_timeout,
        "write_timeout": read_timeout,
        "program_name": "tidemark",
        "local_infile": False,
        **_tls(address),
    }


def _connect_timeout(address: SourceAddress, timeout: timedelta) -> int:
    """The seconds for a connection to open. Raises SourceRefused for a parameter that is no such number."""
    text = address.parameters.get("connect_timeout", str(timeout.total_seconds()))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _LONGEST_WAIT:
        problem = f"connect_timeout {text!r} is not a number of seconds from 0 to {_LONGEST_WAIT}"
        raise _refused(address, problem, "such a number as connect_timeout, or leave it out")
    return max(_LEAST_WAIT, int(seconds))


def _tls(address: SourceAddress) -> dict[str, Any]:
    """`ssl_mode` as the client of MySQL has it; PREFERRED, which is the default, encrypts where the server does."""
    parameters = address.parameters
    mode = ssl_mode(parameters)
    if mode == "DISABLED":
        return {"ssl_disabled": True}
    if mode == "PREFERRED":
        return {}
    if mode not in _VERIFIED:
        known = ", ".join(("DISABLED", "PREFERRED", *_VERIFIED))
        raise _refused(address, f"ssl_mode {mode} is unknown", f"one of {known} as ssl_mode")
    with _files_named(address, "ssl_ca"):
        context = ssl.create_default_context(cafile=parameters.get("ssl_ca"))
    context.check_hostname = mode == "VERIFY_IDENTITY"
    context.verify_mode = _VERIFIED[mode]
    if "ssl_cert" in parameters:
        with _files_named(address, "ssl_cert", "ssl_key"):
            context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    return {"ssl": context}


@contextmanager
def _files_named(address: SourceAddress, *names: str) -> Iterator[None]:
    """Raises an OSError within, which names no file, as SourceRefused with the parameters `names`."""
    try:
        yield
    except OSError as error:
        given = ", ".join(f"{name} {address.parameters[name]!r}" for name in names if name in address.parameters)
        raise _refused(address, f"{given}: {error.strerror or error}", f"files in PEM form as {names[0]}") from error


def _refused(address: SourceAddress, problem: str, wanted: str) -> SourceRefused:
    connection = f"the connection {address.conn_id!r}" if address.conn_id else "the connection"
    remedy = f"Give the connection {wanted}."
    return SourceRefused(source=source_text(address), what=connection, problem=problem, remedy=remedy)
