"""A connection leads to a folder of event files; secrets of a bucket are in the address only, and never shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.errors import InvalidArgument
from tidemark.hooks.source_connection import source_address
from tidemark.lineage.replication import source_dataset
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.operators._replication import jdbc_packages
from tidemark.replication.sources.event_files.settings import settings_of

pytestmark = pytest.mark.airflow

CANARY = "c4n" + "4ry/+@:?"
Define = Callable[..., SourceAddress]


@pytest.fixture
def address(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Define:
    def define(conn_type: str = "event_files", **extra: object) -> SourceAddress:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": conn_type, "extra": json.dumps(extra)}))
        return source_address("shop")

    return define


def test_a_directory_needs_no_more_than_its_place(address: Define) -> None:
    for found in (address(location="/files/shop"), address("generic", kind="event_files", location="/files/shop")):
        assert (found.kind, found.database, found.host) == (SourceKind.EVENT_FILES, "/files/shop", "")
        settings = settings_of(found)
        assert (settings.begin, settings.wait_seconds, settings.keys) == ("beginning", 10.0, {})
        assert source_dataset(found, "public.orders") == ("file:///files/shop", "public.orders")
    assert address("generic", location="/files/shop").kind is SourceKind.DEBEZIUM


def test_a_bucket_takes_the_keys_of_a_connection_of_aws(address: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"conn_type": "aws", "login": "id", "password": CANARY}
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(other))
    found = address(
        location="s3://bucket/shop", files_conn_id="other", keys={"HR.*": ["ID"]}, begin="now", wait_seconds=60
    )
    settings = settings_of(found)
    assert settings.storage_options == {"key": "id", "secret": CANARY}
    assert (settings.keys, settings.begin, settings.wait_seconds) == ({"HR.*": ("ID",)}, "now", 60.0)
    assert CANARY not in f"{found!r}{settings!r}"


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({}, "it lacks the extra location"),
        ({"location": "/a", "envelopes_conn_id": "other"}, "its extra envelopes_conn_id is not supported here"),
        ({"location": "/a", "keys": "no json"}, "its extra keys is not JSON"),
        ({"location": "s3://u:c4n4ry@bucket"}, "must not have a password"),
    ],
)
def test_what_cannot_be_is_refused_by_name(address: Define, extra: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as raised:
        address(**extra)
    assert "c4n4ry" not in str(raised.value)


def test_a_backfill_needs_no_driver_as_there_is_none(airflow_home: Path) -> None:
    from tidemark.hooks.tidemark import TidemarkHook

    assert jdbc_packages(TidemarkHook(), SourceKind.EVENT_FILES) == ()
