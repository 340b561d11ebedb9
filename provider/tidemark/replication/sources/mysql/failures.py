"""The errors of PyMySQL, as errors of ours that name the source and hold no password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.errors import LogPurged, SourceLocked, SourceRefused, SourceUnreachable
from tidemark.errors.tree import TidemarkError
from tidemark.model.source_address import SourceAddress

if TYPE_CHECKING:
    pass

__all__ = ["connect_failure", "failures_named", "log_failure", "said", "source_text"]

_HIDDEN = "***"
_PASSING = frozenset(
    {
        1040, 1053, 1080, 1129, 1152, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1927, 2002, 2003, 2005, 2006, 2013,
        2014, 2055, 3168, 4031,
    }
)  # fmt: skip
"""Error numbers of what may succeed later: nobody answers, or resources are short."""
_LOCKED = frozenset({1205, 3024, 3572})  # a lock was not to be had in time
_REMEDIES = {  # of a connection that the server refused
    1044: "GRANT SELECT ON {database}.* TO {user}",
    1045: "Correct user and password of the connection.",
    1049: "Correct the database (schema) of the connection.",
    1130: "Allow this host: CREATE USER {user}, with a host pattern that fits this machine.",
    1142: "Grant the missing privileges to the user of the connection.",
    1227: "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
    1251: "Use a user whose authentication plugin the client knows (caching_sha2_password, mysql_native_password).",
    1698: "Correct user and password of the connection.",
    2026: "Correct the TLS parameters of the connection (ssl_mode, ssl_ca, ssl_cert, ssl_key).",
    3118: "ALTER USER {user} ACCOUNT UNLOCK",
    3159: "Give the connection the extra ssl_mode=REQUIRED: this server takes encrypted connections only.",
}
_READING_THE_LOG = 1236
_GONE = re.compile(r"could not find (first|next) log|purged|Could not open log|error reading log|not.*found", re.I)


def source_text(address: SourceAddress) -> str:
    """The source as messages name it: without its password."""
    return f"mysql://{address.user}@{address.host}:{address.port}/{address.database}"


def said(error: Exception, address: SourceAddress) -> str:
    """The text of the server or its client, on one line, without a secret."""
    words = error.args[1:] if len(error.args) > 1 else error.args
    text = " ".join(str(word) for word in words)
    text = " ".join(text.split()) or type(error).__name__
    for secret in _secrets_of(address):
        text = text.replace(secret, _HIDDEN)
    return text


def connect_failure(error: Exception, address: SourceAddress) -> TidemarkError:
    """Of a connection that could not be opened: one that may succeed later is SourceUnreachable, else SourceRefused."""
    from tidemark.replication.sources.mysql.names import quoted

    source, text, code = source_text(address), said(error, address), _code(error)
    if code in _PASSING and "SSL" not in text:
        return SourceUnreachable(source=source, problem=text)
    remedy = _REMEDIES.get(2026 if "SSL" in text else code, "Check the server's log.")
    remedy = remedy.format(user=quoted(address.user), database=quoted(address.database))
    return SourceRefused(source=source, what="the connection", problem=text, remedy=remedy)


@contextmanager
def failures_named(address: SourceAddress) -> Iterator[None]:
    """Raises the errors of PyMySQL within as errors of ours. They are SourceUnreachable if the connection is gone or
    the server was short of something. They are SourceLocked if a lock was not to be had, else SourceRefused.
    """
    import pymysql

    try:
        yield
    except (pymysql.err.Error, OSError) as error:
        raise _failure(error, address) from error


def log_failure(error: Exception, address: SourceAddress, position: str) -> TidemarkError:
    """Of a log that could not be read: LogPurged if the server has removed it."""
    text = said(error, address)
    if _code(error) == _READING_THE_LOG and _GONE.search(text):
        problem = f"no longer has its binary log from there on ({text})"
        return LogPurged(source=source_text(address), problem=problem, position=position)
    return _failure(error, address)


def _failure(error: Exception, address: SourceAddress) -> TidemarkError:
    from tidemark.replication.sources.mysql.names import quoted

    source, text, code = source_text(address), said(error, address), _code(error)
    if code in _LOCKED:
        remedy = "Look at performance_schema.metadata_locks or SHOW PROCESSLIST, then try again."
        return SourceLocked(source=source, what="one of its tables", problem=text, remedy=remedy)
    if code in _PASSING or isinstance(error, OSError) or code == 0:
        return SourceUnreachable(source=source, problem=text)
    remedy = _REMEDIES.get(code, f"Check the server's log (error {code}).")
    remedy = remedy.format(user=quoted(address.user), database=quoted(address.database))
    return SourceRefused(source=source, what="a statement", problem=text, remedy=remedy)


def _code(error: Exception) -> int:
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def _secrets_of(address: SourceAddress) -> tuple[str, ...]:
    own = (value for name, value in address.parameters.items() if "password" in name.lower())
    return tuple(secret for secret in (address.password, *own) if secret)
