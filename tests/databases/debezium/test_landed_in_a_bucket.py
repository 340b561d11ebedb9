"""Envelopes in a bucket are read like those in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases.debezium.landed import read_events, reader_of
from tests.object_store import BUCKET, ObjectStore, running_object_store
from tidemark.errors import EnvelopesOutOfOrder
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.planning.debezium_marks import mark_of
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.settings import settings_of


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def line(key: int) -> bytes:
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "file": "b.1", "pos": key}
    row: dict[str, Any] = {"id": key}
    value = {"op": "c", "source": source, "before": None, "after": row}
    return json.dumps({"key": row, "value": value}).encode() + b"\n"


def test_a_bucket_is_read_from_the_last_place_on(store: ObjectStore) -> None:
    parameters = {"storage_options": json.dumps(store.options)}
    address = SourceAddress(SourceKind.DEBEZIUM, "", 0, f"s3://{BUCKET}/landed", "", parameters=parameters)
    store.put("landed/s.d.t/2.json", line(1) + line(2))
    reader = reader_of(address)
    assert [one["key"] for one in read_events(address, reader)] == [None, '["1"]', '["2"]']
    mark = mark_of(reader.upto)
    store.put("landed/s.d.t/3.json", line(3))
    later = reader_of(address, start=mark)
    assert [one["key"] for one in read_events(address, later)][-1:] == ['["3"]']
    store.put("landed/s.d.t/1.json", line(9))
    with pytest.raises(EnvelopesOutOfOrder):
        open_input(settings_of(address)).require_kept(mark.lanes, "there")
