"""Log-only tables of an S3-compatible store: written, removed, swept, and failures with a name. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.object_store import BUCKET, ObjectStore, running_object_store
from tidemark.errors import StorageUnreachable
from tidemark.jobs.workspace import Workspace
from tidemark.lake.orphans import sweep_directories

ODD = "it's 100% a+b #ü"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def test_a_workspace_leaves_nothing_and_sweeps_what_others_left(store: ObjectStore) -> None:
    place = f"s3://{BUCKET}/{ODD}/_tidemark"
    with Workspace(place, "one", options=store.options) as room:
        directory = room.new_directory()
        room.write(f"{directory}/_delta_log/{0:020d}.json", b"{}")
        assert len(store.keys(f"{ODD}/_tidemark/")) == 1
    assert store.keys(f"{ODD}/_tidemark/") == []
    dead = Workspace(place, "dead", options=store.options)
    dead.write(f"{dead.new_directory()}/_delta_log/{0:020d}.json", b"{}")
    for hours, removed in ((-1, 0), (1, 1)):
        swept = sweep_directories(dead.root, store.options, older_than=datetime.now(UTC) + timedelta(hours=hours))
        assert len(swept.removed) == removed
    assert store.keys(f"{ODD}/_tidemark/") == []


def test_closing_twice_or_after_another_has_swept_is_harmless(store: ObjectStore) -> None:
    room = Workspace(f"s3://{BUCKET}/{ODD}/twice", "one", options=store.options)
    room.write(f"{room.new_directory()}/_delta_log/{0:020d}.json", b"{}")
    room.new_directory()
    for key in store.keys(f"{ODD}/twice/"):
        store.client.delete_object(Bucket=BUCKET, Key=key)
    room.close()
    room.close()


def test_a_store_that_is_not_there_is_named() -> None:
    options = {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:9"}
    room = Workspace("s3://lake/_tidemark", "one", options=options)
    with pytest.raises(StorageUnreachable, match="s3://lake/_tidemark/log_only/one"):
        room.write(f"{room.new_directory()}/x", b"")
