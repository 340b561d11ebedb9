"""A backfill by JDBC is encrypted as a capture by PyMySQL is."""

from __future__ import annotations

import pytest

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.sources.mysql.jdbc import jdbc_url, tls_properties


def _address(host: str = "db", **parameters: str) -> SourceAddress:
    return SourceAddress(SourceKind.MYSQL, host, 3306, "a b", "u", "p", parameters=parameters)


@pytest.mark.parametrize(
    ("parameters", "encrypted", "found"),
    [
        ({}, True, {"sslMode": "trust"}),
        ({"ssl_mode": "preferred"}, True, {"sslMode": "trust"}),
        ({}, False, {"sslMode": "disable", "allowPublicKeyRetrieval": "true"}),
        ({"ssl_mode": "DISABLED"}, False, {"sslMode": "disable", "allowPublicKeyRetrieval": "true"}),
        ({"ssl_mode": "REQUIRED"}, True, {"sslMode": "trust"}),
        ({"ssl_ca": "/ca.pem"}, True, {"sslMode": "verify-ca", "serverSslCert": "/ca.pem"}),
        ({"ssl_mode": "VERIFY_IDENTITY"}, True, {"sslMode": "verify-full"}),
    ],
)
def test_tls_is_what_the_connection_says_or_what_the_server_can_do(
    parameters: dict[str, str], encrypted: bool, found: dict[str, str]
) -> None:
    assert tls_properties(_address(**parameters), encrypted=encrypted, asks_for_key=True) == found


def test_a_key_of_the_server_is_asked_for_by_a_mysql_alone() -> None:
    assert tls_properties(_address(), encrypted=False, asks_for_key=False) == {"sslMode": "disable"}


def test_a_certificate_of_the_client_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="ssl_cert"):
        tls_properties(_address(ssl_cert="/c.pem"), encrypted=True, asks_for_key=False)


def test_the_url_has_no_password() -> None:
    assert jdbc_url(_address("::1")) == "jdbc:mysql://[::1]:3306/a%20b?permitMysqlScheme"
