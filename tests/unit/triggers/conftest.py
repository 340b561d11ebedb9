"""A world without Spark behind an Airflow connection that is in the environment, as a triggerer may have it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
import sqlalchemy as sa
from fsspec.implementations.local import LocalFileSystem

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tests.guarantees.world import World
from tests.unit.triggers.sea import Asked, Sea, threads_of_triggers

assert HOME


class SlowFiles(LocalFileSystem):  # type: ignore[misc]
    """The local disk as slow as an object store far away: each request takes `seconds` and notes its thread."""

    protocol = ("slow", "file")
    seconds: ClassVar[float] = 0.0
    asked: ClassVar[list[Asked]] = []
    open_again: ClassVar[threading.Event] = threading.Event()
    open_again.set()

    def info(self, path: str, **kwargs: Any) -> Any:
        self.asked.append(Asked(threading.current_thread().name, time.monotonic()))
        return super().info(path, **kwargs)

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:
        self.asked.append(Asked(threading.current_thread().name, time.monotonic()))
        time.sleep(self.seconds)
        self.open_again.wait(60)
        return super().ls(path, detail, **kwargs)

    def cat_file(self, path: str, **kwargs: Any) -> Any:
        self.asked.append(Asked(threading.current_thread().name, time.monotonic()))
        time.sleep(self.seconds)
        self.open_again.wait(60)
        return super().cat_file(path, **kwargs)


@pytest.fixture(scope="session", autouse=True)
def slow_files() -> type[SlowFiles]:
    fsspec.register_implementation("slow", SlowFiles, clobber=True)
    return SlowFiles


@pytest.fixture
def slow(slow_files: type[SlowFiles]) -> Iterator[Callable[[float], list[Asked]]]:
    """Makes places that begin with slow:// as slow as that; returns who asks there."""

    def takes(seconds: float) -> list[Asked]:
        slow_files.seconds = seconds
        slow_files.asked = []
        return slow_files.asked

    yield takes
    slow_files.seconds = 0.0


@pytest.fixture
def hung(slow_files: type[SlowFiles]) -> Iterator[threading.Event]:
    """Places that begin with slow:// give no answer, until this is set."""
    slow_files.open_again.clear()
    yield slow_files.open_again
    slow_files.open_again.set()


@pytest.fixture
def sea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sea]:
    """Stream `s` on an empty table, in an SQLite store. At the end no trigger has left a thread behind."""
    url = f"sqlite:///{tmp_path}/control.db"
    extra = {"control_store": url, "lake_root": str(tmp_path)}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    world = World(tmp_path, url)
    world.clock.now = datetime.now(UTC)
    made = Sea(world)
    world.stream("s")
    yield made
    deadline = time.monotonic() + 30
    while threads_of_triggers() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threads_of_triggers() == []


@pytest.fixture
def queries() -> Iterator[list[str]]:
    """Every statement that any store executes."""
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """All that was logged so far, in one line."""
    heard: list[str] = []

    def so_far() -> str:
        heard.append(capfd.readouterr().out)
        return " ".join((caplog.text + "".join(heard)).split())

    return so_far
