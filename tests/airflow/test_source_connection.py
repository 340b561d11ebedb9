"""An Airflow connection of type postgres says where a source is; what it cannot say here is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from tidemark.errors import InvalidArgument
from tidemark.hooks.source_connection import source_address
from tidemark.model.source_address import SourceAddress, SourceKind

pytestmark = pytest.mark.airflow

CANARY = "c4n" + "4ry/+@:?"
WHOLE = {"conn_type": "postgres", "host": "db", "port": 6543, "login": "ana", "password": CANARY, "schema": "shop"}
Define = Callable[..., SourceAddress]


@pytest.fixture
def address(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Define:
    def define(**fields: object) -> SourceAddress:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({**WHOLE, **fields}))
        return source_address("shop")

    return define


def test_an_address_is_what_the_connection_says(address: Define) -> None:
    extra = {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "connect_timeout": 7, "cursor": "dictcursor"}
    parameters = {"sslmode": "verify-full", "sslrootcert": "/ca.pem", "connect_timeout": "7"}
    found = address(extra=json.dumps(extra))
    assert found == SourceAddress(SourceKind.POSTGRESQL, "db", 6543, "shop", "ana", CANARY, parameters)


def test_the_secret_that_hashes_is_an_extra_that_nothing_shows(address: Define) -> None:
    found = address(extra=json.dumps({"hash_secret": CANARY * 2, "sslmode": "require"}))
    assert (found.hash_secret, found.parameters) == (CANARY * 2, {"sslmode": "require"})
    assert CANARY not in repr(found)
    assert address().hash_secret is None


def test_host_and_port_have_the_defaults_of_the_database(address: Define) -> None:
    found = address(host=None, port=None, password=None)
    assert (found.host, found.port, found.password) == ("localhost", 5432, None)


def test_a_mysql_or_mariadb_needs_no_database_and_has_extras_of_its_own(address: Define) -> None:
    extra = {"ssl_mode": "VERIFY_CA", "ssl_ca": "/ca.pem", "charset": "utf8", "hash_secret": CANARY * 2}
    found = address(conn_type="mysql", port=None, schema=None, extra=json.dumps(extra))
    parameters = {"ssl_mode": "VERIFY_CA", "ssl_ca": "/ca.pem"}
    expected = SourceAddress(SourceKind.MYSQL, "db", 3306, "", "ana", CANARY, parameters, CANARY * 2)
    assert found == expected
    files = {"ssl": {"ca": "/ca.pem", "cert": "/c.pem", "key": "/k.pem"}}
    nested = address(conn_type="mariadb", extra=json.dumps(files))
    assert nested.kind is SourceKind.MARIADB
    assert nested.parameters == {"ssl_ca": "/ca.pem", "ssl_cert": "/c.pem", "ssl_key": "/k.pem"}
    with pytest.raises(InvalidArgument, match="sslmode is not supported"):
        address(conn_type="mysql", extra=json.dumps({"sslmode": "require"}))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"conn_type": "oracle"}, "type is 'oracle'"),
        ({"login": None}, "lacks its login"),
        ({"schema": ""}, "name of the database"),
        ({"extra": json.dumps({"iam": True})}, "extra iam is not supported"),
        ({"extra": json.dumps({"sslpassword": CANARY})}, "extra sslpassword is not supported"),
        ({"extra": json.dumps({"sslcrl": "/crl.pem"})}, "extra sslcrl is not supported"),
    ],
)
def test_what_cannot_be_reached_by_it_is_refused_without_its_password(
    address: Define, fields: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        address(**fields)
    assert CANARY[:7] not in f"{refused.value!r}{refused.value}{refused.value.to_record()}"


def test_an_extra_that_is_off_changes_nothing(address: Define) -> None:
    assert address(extra=json.dumps({"iam": False})).parameters == {}


def test_a_connection_that_is_not_there_is_an_error(airflow_home: Path) -> None:
    with pytest.raises(AirflowNotFoundException):
        source_address("nobody_made_it")


def test_the_password_is_masked_in_logs_and_printed_nowhere(address: Define) -> None:
    from airflow.sdk.log import mask_logs

    found = address()
    written = f"postgresql://ana:{found.password}@db and {json.dumps(found.password)}"
    assert CANARY[:7] not in f"{found}{found!r}"
    assert CANARY[:7] not in str(mask_logs(None, "info", {"event": written}))  # type: ignore[arg-type]
