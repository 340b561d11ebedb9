"""A connection of the type kafka is where brokers are, and is refused if it would mean something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import redact

from tidemark.errors import InvalidArgument
from tidemark.hooks.kafka_connection import kafka_address
from tidemark.kafka.address import KafkaAddress

pytestmark = pytest.mark.airflow

SECRETS = {"sasl.password": "s3cret-1", "ssl.key.password": "s3cret-2", "sasl.oauthbearer.client.secret": "s3cret-3"}
Define = Callable[..., KafkaAddress]


@pytest.fixture
def address(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Define:
    def define(extra: dict[str, Any] | None = None, **fields: object) -> KafkaAddress:
        said = {"conn_type": "kafka", "extra": json.dumps(extra or {}), **fields}
        monkeypatch.setenv("AIRFLOW_CONN_BROKERS", json.dumps(said))
        return kafka_address("brokers")

    return define


def test_the_extras_of_airflows_provider_say_where_brokers_are(address: Define) -> None:
    extra = {
        "bootstrap.servers": "a:9092,b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "enable.ssl.certificate.verification": True,
        "group.id": "of others",
        "auto.offset.reset": "latest",
        "ssl.ca.location": "",
        **SECRETS,
    }
    found = address(extra)
    assert (found.brokers, found.conn_id) == ("a:9092,b:9092", "brokers")
    assert found.settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "enable.ssl.certificate.verification": "true",
        **SECRETS,
    }
    shown = f"{found!r} {redact(' '.join(SECRETS.values()))}"
    assert not [secret for secret in SECRETS.values() if secret in shown]


def test_host_and_login_do_as_well(address: Define) -> None:
    found = address(host="broker", login="ann", password="s3cret-4")
    assert found.brokers == "broker:9092"
    assert found.settings == {"sasl.username": "ann", "sasl.password": "s3cret-4"}
    assert address(host="broker", port=9999).brokers == "broker:9999"
    assert address({"bootstrap.servers": "a:1"}, host="broker").brokers == "a:1"


@pytest.mark.parametrize(
    ("facts", "extra", "problem"),
    [
        ({"conn_type": "postgres"}, {"bootstrap.servers": "a:1"}, "give one of type kafka"),
        ({}, {}, "names no brokers"),
        (
            {},
            {"bootstrap.servers": "a:1", "plugin.library.paths": "/tmp/x.so"},
            "plugin.library.paths is not supported",
        ),
        ({}, {"bootstrap.servers": "a:1", "sasl.kerberos.kinit.cmd": "rm"}, "kinit.cmd is not supported"),
        ({}, {"bootstrap.servers": "a:1", "error_cb": "a.b"}, "error_cb is not supported"),
    ],
)
def test_a_connection_that_would_mean_something_else_is_refused(
    address: Define, facts: dict[str, Any], extra: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        address(extra, **facts)


def test_a_connection_that_does_not_exist_is_airflows_error(airflow_home: Path) -> None:
    with pytest.raises(AirflowNotFoundException):
        kafka_address("no_such_brokers")
