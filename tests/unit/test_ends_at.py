"""The versions of a stream's tables at a moment that is just past (R21), with any clock of their writers."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import PROTOCOL, commit, metadata
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Stream, StreamMode, TableRef
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.sources import ends_at
from tidemark.streams.worker.streams import create_stream

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = START + timedelta(minutes=10)
SECOND = timedelta(seconds=1)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """At version 0 of a table that was made an hour before START."""
    tracked = metadata(**{"delta.enableRowTracking": "true"})
    for version, actions in enumerate([(PROTOCOL, tracked), ()]):
        commit(tmp_path / "t", version, *actions, at=START - timedelta(hours=1))
    store = ControlStore(f"sqlite:///{tmp_path}/control.db", clock=lambda: START)
    store.migrate()
    source = TableRef("shop.t", str(tmp_path / "t"), "id-1")
    made = create_stream(store, name="s", source=source, mode=StreamMode.STANDARD, at_version=0, who="ana")
    store.close()
    return made


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        pytest.param((), 1, id="nothing since"),
        pytest.param((-SECOND,), 2, id="just before"),
        pytest.param((timedelta(0),), 2, id="at the moment"),
        pytest.param((SECOND,), 1, id="just after"),
        pytest.param((-SECOND, SECOND, 2 * SECOND), 2, id="before and after"),
        pytest.param((-SECOND, timedelta(hours=1)), 3, id="a writer whose clock is ahead"),
    ],
)
def test_the_version_at_a_moment_is_told_by_the_times_of_commits(
    stream: Stream, tmp_path: Path, committed: tuple[timedelta, ...], expected: int
) -> None:
    for version, after in enumerate(committed, start=2):
        commit(tmp_path / "t", version, at=START + after)
    assert ends_at(stream, open_table, START, lambda: NOW, {}) == (expected,)


def test_a_table_whose_log_begins_after_the_moment_ends_at_the_streams_offset(stream: Stream, tmp_path: Path) -> None:
    for file in (tmp_path / "t" / "_delta_log").iterdir():
        os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    assert ends_at(stream, open_table, START, lambda: NOW + SECOND, {}) == (0,)


def test_a_commit_that_comes_while_the_log_is_read_is_not_in_the_future(stream: Stream, tmp_path: Path) -> None:
    def opened(table: TableRef | str) -> DeltaLog:
        commit(tmp_path / "t", 2, at=NOW + SECOND)
        return open_table(table)

    assert ends_at(stream, opened, START, lambda: NOW + 2 * SECOND, {}) == (1,)
