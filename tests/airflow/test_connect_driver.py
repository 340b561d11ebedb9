"""A Spark Connect connection becomes a URL for the driver's environment; secrets are shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import Connection

from tidemark.errors import ConnectClientNotFound, InvalidArgument
from tidemark.hooks.connect_driver import ConnectDriver, is_connect, require_connect_client, server_address, server_url

pytestmark = pytest.mark.airflow


def connection(host: str, conn_type: str = "spark_connect", **more: object) -> Connection:
    return Connection(conn_id="c", conn_type=conn_type, host=host, **more)


@pytest.mark.parametrize("host", ["spark.example", "sc://spark.example", "sc://spark.example/"])
def test_a_host_is_a_server_whatever_its_form(host: str) -> None:
    assert server_url(connection(host, port=15002)) == "sc://spark.example:15002/"
    assert server_url(connection("sc://spark.example:15002")) == "sc://spark.example:15002/"
    assert server_url(connection(host)) == "sc://spark.example/"


def test_user_token_tls_and_session_are_parameters_with_every_letter_kept() -> None:
    full = connection("h", port=1, login="a b", password="p;=/é", extra='{"use_ssl": true}')
    assert server_url(full, "the-id") == (
        "sc://h:1/;user_id=a%20b;token=p%3B%3D%2F%C3%A9;use_ssl=true;session_id=the-id"
    )
    assert server_address(full) == "sc://h:1"


@pytest.mark.parametrize("host", ["", "http://h", "sc://h/database"])
def test_a_host_that_is_no_server_is_refused(host: str) -> None:
    with pytest.raises(InvalidArgument, match="a Spark Connect server is a host name"):
        server_url(connection(host))


def test_connect_is_known_by_its_type_or_by_its_host() -> None:
    assert is_connect(connection("h"))
    assert is_connect(connection("sc://h", "spark"))
    assert not is_connect(connection("spark://h", "spark"))
    assert not is_connect(connection("local[2]", "spark"))


def test_a_worker_without_the_client_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.hooks.connect_driver._CLIENT", ("pyspark", "no_such_package"))
    with pytest.raises(ConnectClientNotFound, match=r"no_such_package is missing.*pip install"):
        require_connect_client()


def test_a_session_that_was_never_opened_needs_no_end(tmp_path: Path) -> None:
    driver = ConnectDriver("sc://h:1/;token=s3cr3t", spark_log=tmp_path / "log", arguments=(), environment={})
    assert driver.end_session()
    assert driver.server == "sc://h:1"
    assert "s3cr3t" not in driver.server
