"""A URI names the host of its file system, such as that of an HDFS."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from fsspec.implementations.arrow import HadoopFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tidemark.lake.log_paths import event_logs_root, remove_log
from tidemark.lake.storage import Storage, file_system_of


class PlayedHdfs(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, for each host its own. URLs are read as those of HDFS."""

    protocol = "hdfs"
    cachable = False
    of_hosts: ClassVar[dict[tuple[str, int], dict[str, Any]]] = {}
    _get_kwargs_from_urls = staticmethod(HadoopFileSystem._get_kwargs_from_urls)

    def __init__(self, host: str = "default", port: int = 0, user: str | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.host, self.port, self.user = host, port, user
        self.store = self.of_hosts.setdefault((host, port), {})

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(HadoopFileSystem._strip_protocol(path)).rstrip("/")


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[tuple[str, int], dict[str, Any]]]:
    monkeypatch.setitem(importlib.import_module("fsspec.registry")._registry, "hdfs", PlayedHdfs)
    yield PlayedHdfs.of_hosts
    PlayedHdfs.of_hosts.clear()


def test_files_are_those_of_the_host_that_the_uri_names(hosts: dict[tuple[str, int], dict[str, Any]]) -> None:
    one, other = Storage("hdfs://one:8020/lake"), Storage("hdfs://etl@other/lake")
    one.write("a", b"of one")
    other.write("a", b"of other")
    assert (one.read_bytes("a"), other.read_bytes("a")) == (b"of one", b"of other")
    assert {name: list(files) for name, files in hosts.items()} == {
        ("one", 8020): ["/lake/a"],
        ("other", 0): ["/lake/a"],
    }
    assert other.file_system()[0].user == "etl"
    assert Storage("hdfs:///lake").file_system()[0].host == "default"


def test_options_count_before_the_uri(hosts: dict[tuple[str, int], dict[str, Any]]) -> None:
    found = Storage("hdfs://one:8020/lake", {"host": "two", "user": "etl"}).file_system()[0]
    assert (found.host, found.port, found.user) == ("two", 8020, "etl")


def test_a_log_is_removed_from_its_host(hosts: dict[tuple[str, int], dict[str, Any]]) -> None:
    log = f"{event_logs_root('hdfs://one:8020/lake/_tidemark')}/shop"
    Storage(log).write("_delta_log/0.json", b"{}")
    remove_log(log)
    assert hosts["one", 8020] == {}


def test_webhdfs_and_object_stores_are_opened_by_their_uris() -> None:
    assert file_system_of("webhdfs://namenode:9870/lake", {}).url == "http://namenode:9870/webhdfs/v1"
    assert file_system_of("s3://bucket/a?versionId=b", {"key": "k", "secret": "s"}).version_aware is False
