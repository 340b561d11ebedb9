"""A file is written whole, in directories that need not exist, and over an older one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.object_store import BUCKET, running_object_store
from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.storage import Storage


def test_of_a_local_directory(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"))
    storage.write("a b/%25/one", b"before")
    storage.write("a b/%25/one", b"after")
    assert storage.names("a b/%25") == ["one"]
    assert (tmp_path / "lake" / "a b" / "%25" / "one").read_bytes() == b"after"


def test_of_an_object_store() -> None:
    with running_object_store() as store:
        storage = Storage(f"s3://{BUCKET}/events", store.options)
        storage.write("public_t/one", b"before")
        storage.write("public_t/one", b"after")
        assert store.keys() == ["events/public_t/one"]
        assert storage.read_bytes("public_t/one") == b"after"


def test_a_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((StorageRefused, StorageUnreachable, NotADirectoryError)):
        Storage(str(tmp_path)).write("file/one", b"x")
