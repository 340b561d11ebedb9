"""The address of a source as MariaDB's driver of JDBC takes it."""

from __future__ import annotations

from urllib.parse import quote

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.mysql.connection import ssl_mode

__all__ = ["jdbc_url", "tls_properties"]

_MODES = {"REQUIRED": "trust", "VERIFY_CA": "verify-ca", "VERIFY_IDENTITY": "verify-full"}


def jdbc_url(address: SourceAddress) -> str:
    """Without user and password. The scheme of MySQL makes Spark quote names as both databases want it."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"jdbc:mysql://{host}:{address.port}/{quote(address.database, safe='')}?permitMysqlScheme"


def tls_properties(address: SourceAddress, *, encrypted: bool, asks_for_key: bool) -> dict[str, str]:
    """By the connection's `ssl_mode`. The driver cannot prefer TLS: so `encrypted` says whether a session of PyMySQL,
    which prefers it, has it. Without TLS a MySQL lets a user in by its public key, which nobody verifies
    (`asks_for_key`).

    Raises InvalidArgument for a certificate of the client, which Java has in a store of its own.
    """
    parameters = address.parameters
    if "ssl_cert" in parameters:
        problem = "a backfill reads by JDBC, which knows no client certificate as a file; let the user in by a password"
        raise InvalidArgument(argument="ssl_cert", value="***", problem=problem)
    mode = ssl_mode(parameters)
    if mode not in _MODES:
        retrieval = {"allowPublicKeyRetrieval": "true"} if asks_for_key and not encrypted else {}
        return {"sslMode": "trust" if encrypted else "disable", **retrieval}
    authority = {"serverSslCert": parameters["ssl_ca"]} if "ssl_ca" in parameters else {}
    return {"sslMode": _MODES[mode], **authority}
