"""The files between worker and driver in a storage that shows files before they are whole."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tidemark.hooks._job_files import worked_for
from tidemark.jobs.files import exists, has_lost_its_worker, read_text, write_text

RESULT = "hdfs://namenode/lake/_tidemark/cluster_jobs/one/result.json"


class PlayedHdfs(MemoryFileSystem):  # type: ignore[misc]
    """Keeps what was opened for writing, and renames nothing to a name that another file has."""

    protocol = "hdfs"
    root_marker = "/"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    opened: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("hdfs://namenode").strip("/")

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if mode == "wb":
            self.opened.append(path)
        return super()._open(path, mode, **more)

    def mv(self, path1: str, path2: str, **more: Any) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **more)


@pytest.fixture(autouse=True)
def hdfs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(importlib.import_module("fsspec.registry")._registry, "hdfs", PlayedHdfs)
    yield
    PlayedHdfs.store.clear()
    PlayedHdfs.opened.clear()


def test_a_result_in_hdfs_has_its_name_only_as_a_whole() -> None:
    for text in ("the first", "the second"):
        write_text(RESULT, text)
        assert read_text(RESULT) == text
    assert exists(RESULT)
    assert list(PlayedHdfs.store) == ["/lake/_tidemark/cluster_jobs/one/result.json"]
    assert all(name.endswith(".half") for name in PlayedHdfs.opened)


def test_a_driver_knows_from_the_lock_of_its_worker_whether_that_is_dead(tmp_path: Path) -> None:
    spec = str(tmp_path / "spec.json")
    assert not has_lost_its_worker(spec)  # of an application, which has no such file
    with worked_for(tmp_path):
        assert not has_lost_its_worker(spec)
    assert has_lost_its_worker(spec)
