"""The errors of psycopg2, as errors of ours that name the source and hold no password."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.errors import SourceLocked, SourceRefused, SourceUnreachable
from tidemark.errors.tree import TidemarkError
from tidemark.model.source_address import SourceAddress

if TYPE_CHECKING:
    import psycopg2

__all__ = ["connect_failure", "failures_named", "said", "secrets_of", "source_of", "source_text"]

_HIDDEN = "***"
_PASSING = ("53", "57")  # SQLSTATE classes: resources are short, an operator intervened
_LOST = ("08",)
_LOCKED = "55P03"  # a lock was not to be had in time
_CLIENT_SIDE = re.compile(  # what libpq says by itself: nobody answered, or not to the end
    r"could not (connect|translate|send|receive|read|write|resolve)|refused|timeout|timed out|unreachable|no route"
    r"|reset by|closed the connection unexpectedly|terminat(ed|ing) |broken pipe|SSL SYSCALL|network is down",
    re.IGNORECASE,
)
_NOT_NOW = re.compile(  # what a server says that may answer later
    r"database system is (starting|shutting|in recovery|not yet)|too many (clients|connections)|not currently accepting"
    r"|remaining connection slots|requested standby connections",
    re.IGNORECASE,
)
_REMEDIES = (  # of a connection that the server refused, by what it says
    (r"password authentication|no password supplied", "Correct user and password of the connection."),
    (r'role "(?P<user>.+)" does not exist', "Correct the user of the connection, or create the role."),
    (r'database ".+" does not exist', "Correct the database (schema) of the connection."),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "Add a line for this user, database and host to the server's pg_hba.conf, then: SELECT pg_reload_conf()",
    ),
    (
        r"walsender|replication role|REPLICATION attribute|start WAL sender",
        "ALTER ROLE {user} REPLICATION",
    ),
    (r"permission denied for database|CONNECT privilege", "GRANT CONNECT ON DATABASE {database} TO {user}"),
    (r"not permitted to log in", "ALTER ROLE {user} LOGIN"),
    (r"invalid (connection option|dsn)|invalid .*value|certificate|sslmode", "Correct the connection's parameters."),
)
_ENCODING = "Its database must have an encoding that is known (not SQL_ASCII)."
_WALSENDERS = (
    "All WAL senders are in use. Raise max_wal_senders: ALTER SYSTEM SET max_wal_senders = 20, then restart the server."
)


def source_text(address: SourceAddress) -> str:
    """How a source is called in messages: postgresql://user@host:port/database, without a password, and from which
    connection that is.
    """
    place = f"{address.kind.value}://{address.user}@{address.host}:{address.port}/{address.database}"
    return place if address.conn_id is None else f"{place} (from the connection {address.conn_id!r})"


def source_of(connection: psycopg2.extensions.connection) -> str:
    """`source_text` of an open connection."""
    at = connection.get_dsn_parameters()
    return f"postgresql://{at.get('user')}@{at.get('host')}:{at.get('port')}/{at.get('dbname')}"


def said(error: Exception, secrets: Iterable[str] = ()) -> str:
    """The text of the server or its client, on one line, without any of `secrets`."""
    text = " ".join(str(error).split()) or type(error).__name__
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return text


def connect_failure(error: Exception, address: SourceAddress) -> TidemarkError:
    """Of a connection that could not be opened: one that may succeed later is SourceUnreachable, else SourceRefused."""
    from tidemark.replication.sources.postgresql.names import quoted

    text = said(error, secrets_of(address))
    source = source_text(address)
    if "requested standby connections" in text:
        return SourceUnreachable(source=source, problem=f"{text} {_WALSENDERS}")
    remedy = next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)), None)
    if remedy is None and (_NOT_NOW.search(text) or _CLIENT_SIDE.search(text)):
        return SourceUnreachable(source=source, problem=text)
    remedy = (remedy or "Check the server's log.").format(user=quoted(address.user), database=quoted(address.database))
    return SourceRefused(source=source, what="the connection", problem=text, remedy=remedy)


@contextmanager
def failures_named(address: SourceAddress) -> Iterator[None]:
    """Raises the errors of psycopg2 within as errors of ours. They are SourceUnreachable if the connection is gone or
    the server was short of something. They are SourceLocked if a lock was not to be had, else SourceRefused. So is a
    text that the server did not convert, such as the query of another session.
    """
    import psycopg2

    try:
        yield
    except psycopg2.Error as error:
        raise _failure(error, address) from error
    except UnicodeDecodeError as error:
        problem = f"{error.reason} at byte {error.start}"
        failure = SourceRefused(source=source_text(address), what="a text in UTF-8", problem=problem, remedy=_ENCODING)
        raise failure from None


def secrets_of(address: SourceAddress) -> tuple[str, ...]:
    """The secrets that must be in no message: the password, and those of key files. To be kept in no variable that an
    error's traceback could show.
    """
    own = (value for name, value in address.parameters.items() if "password" in name.lower())
    return tuple(secret for secret in (address.password, *own) if secret)


def _failure(error: psycopg2.Error, address: SourceAddress) -> TidemarkError:
    import psycopg2

    source, text, code = source_text(address), said(error, secrets_of(address)), error.pgcode or ""
    gone = not code and isinstance(error, (psycopg2.OperationalError, psycopg2.InterfaceError))
    if gone or (code.startswith((*_PASSING, *_LOST)) and code != "57014"):
        return SourceUnreachable(source=source, problem=text)
    if code == _LOCKED:
        return SourceLocked(source=source, what="one of its tables", problem=text, remedy=_statement_remedy(code))
    return SourceRefused(source=source, what="a statement", problem=text, remedy=_statement_remedy(code))


def _statement_remedy(code: str) -> str:
    if code == "42501":
        return "Grant the missing privileges to the user of the connection."
    if code in (_LOCKED, "57014"):
        return "Something else held a lock for too long; look at pg_locks, then try again."
    if code == "25006":
        return "Connect to the primary, with a role that may write (default_transaction_read_only = off)."
    return f"Check the server's log (SQLSTATE {code or 'none'})."
