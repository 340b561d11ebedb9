"""A connection leads to landed envelopes; secrets of brokers and buckets are in the address only, and never shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import InvalidArgument
from tidemark.hooks.source_connection import source_address
from tidemark.lineage.replication import source_dataset
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.sources.debezium.settings import settings_of

pytestmark = pytest.mark.airflow

CANARY = "c4n" + "4ry/+@:?"
Define = Callable[..., SourceAddress]


@pytest.fixture
def address(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Define:
    def define(conn_type: str = "debezium", **extra: object) -> SourceAddress:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": conn_type, "extra": json.dumps(extra)}))
        return source_address("shop")

    return define


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda **fields: monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(fields))


def test_a_directory_needs_no_more_than_its_place(address: Define) -> None:
    for kind in ("debezium", "generic"):
        found = address(kind, location="/landing/shop")
        assert (found.kind, found.database, found.host, found.conn_id) == (
            SourceKind.DEBEZIUM,
            "/landing/shop",
            "",
            "shop",
        )
        assert settings_of(found).begin == "beginning"
        assert source_dataset(found, "public.orders") == ("file:///landing/shop", "public.orders")


def test_a_bucket_takes_the_keys_of_a_connection_of_aws(address: Define, other: Callable[..., None]) -> None:
    extra = json.dumps({"endpoint_url": "http://minio:9000", "region_name": "eu-west-1"})
    other(conn_type="aws", login="id", password=CANARY, extra=extra)
    found = address(location="s3://bucket/shop", envelopes_conn_id="other", keys='{"shop.*": ["id"]}', begin="now")
    settings = settings_of(found)
    assert settings.storage_options == {
        "key": "id",
        "secret": CANARY,
        "endpoint_url": "http://minio:9000",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    assert (settings.keys, settings.begin) == ({"shop.*": ("id",)}, "now")
    assert CANARY not in f"{found!r}{settings!r}"


def test_topics_take_the_brokers_of_a_connection_of_kafka(address: Define, other: Callable[..., None]) -> None:
    extra = json.dumps({"bootstrap.servers": "b:9092", "security.protocol": "SASL_SSL", "group.id": "ours"})
    other(conn_type="kafka", login="ana", password=CANARY, extra=extra)
    found = address(location="kafka:shop.public.*,shop.extra", envelopes_conn_id="other")
    settings = settings_of(found)
    assert settings.topics == ("shop.public.*", "shop.extra")
    assert settings.brokers is not None
    assert settings.brokers.settings == {
        "sasl.username": "ana",
        "sasl.password": CANARY,
        "security.protocol": "SASL_SSL",
    }
    assert CANARY not in f"{found!r}{settings!r}"
    assert source_dataset(found, "public.orders")[0] == "kafka://b:9092"


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({}, "it lacks the extra location"),
        ({"location": "/a", "sslmode": "require"}, "its extra sslmode is not supported here"),
        ({"location": "kafka:a"}, "topics need the extra envelopes_conn_id"),
        ({"location": "/a", "keys": "no json"}, "its extra keys is not JSON"),
        ({"location": "/a", "keys": {"t": "id"}}, "lists of columns"),
        ({"location": "s3://u:c4n4ry@bucket"}, "must not have a password"),
        ({"location": "/a", "envelopes_conn_id": "other"}, "of the type 'http'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    address: Define, other: Callable[..., None], extra: dict[str, object], said: str
) -> None:
    other(conn_type="http")
    with pytest.raises(InvalidArgument, match=said) as raised:
        address(**extra)
    assert "c4n4ry" not in str(raised.value)


def test_a_begin_that_is_none_is_refused_before_anything_is_read(address: Define) -> None:
    with pytest.raises(InvalidArgument, match="give beginning or now"):
        settings_of(address(location="/a", begin="later"))
