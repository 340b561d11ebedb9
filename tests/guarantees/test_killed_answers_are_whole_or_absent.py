"""A writer of an answer that is killed at any point leaves an answer that is whole, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.guarantees.killed_keeper import NOW, asked
from tidemark.control.store import ControlStore
from tidemark.failpoints import KILL_AT
from tidemark.results.model.answers import Miss, Why
from tidemark.results.worker.cache import Hit, ResultCache, look_up, sweep_unused


@pytest.fixture
def cache(sqlite_store: str, tmp_path: Path) -> Iterator[ResultCache]:
    store = ControlStore(sqlite_store, clock=lambda: NOW)
    yield ResultCache(store, f"file://{tmp_path}/_tidemark")
    store.close()


def run(cache: ResultCache, url: str, kill_at: str = "") -> int:
    command = [sys.executable, "-m", "tests.guarantees.killed_keeper", url, cache.workspace]
    environment = {**os.environ, KILL_AT: kill_at}
    return subprocess.run(command, env=environment, check=False, start_new_session=True).returncode


def directories(cache: ResultCache) -> list[Path]:
    return sorted(Path(cache.workspace.removeprefix("file://")).glob("results/*"))


def test_a_kill_before_the_row_leaves_files_that_nobody_reads_and_a_later_sweep_removes(
    cache: ResultCache, sqlite_store: str
) -> None:
    assert run(cache, sqlite_store, "answer.indexed.before") == -9
    missed = look_up(cache, asked(cache))
    assert isinstance(missed, Miss)
    assert missed.why is Why.FIRST
    (left,) = directories(cache)
    assert run(cache, sqlite_store) == 0
    found = look_up(cache, asked(cache))
    assert isinstance(found, Hit)
    assert found.opened.table().to_pydict() == {"n": [1]}
    soon = datetime.now(UTC) - timedelta(days=1)
    assert sweep_unused(cache, soon) == ((), "")
    late = datetime.now(UTC) + timedelta(days=1)
    assert sweep_unused(cache, late, dry_run=True) == ((f"file://{left}",), "")
    assert sweep_unused(cache, late) == ((f"file://{left}",), "")
    assert [f"file://{place}" for place in directories(cache)] == [found.answer.written.location]


def test_a_kill_after_the_row_leaves_an_answer_that_is_whole(cache: ResultCache, sqlite_store: str) -> None:
    assert run(cache, sqlite_store, "answer.indexed") == -9
    found = look_up(cache, asked(cache))
    assert isinstance(found, Hit)
    assert found.opened.table().to_pydict() == {"n": [1]}
    assert run(cache, sqlite_store) == 0
    again = look_up(cache, asked(cache))
    assert isinstance(again, Hit)
    assert again.answer == found.answer  # the first one counts


def test_files_that_are_lost_end_their_answer(cache: ResultCache, sqlite_store: str) -> None:
    assert run(cache, sqlite_store) == 0
    (place,) = directories(cache)
    (place / "answer.parquet").write_bytes(b"PAR1 no more")
    missed = look_up(cache, asked(cache))
    assert isinstance(missed, Miss)
    assert (missed.why, "cannot be read" in missed.text) == (Why.LOST, True)
    assert run(cache, sqlite_store) == 0
    assert isinstance(look_up(cache, asked(cache)), Hit)
    (place,) = (one for one in directories(cache) if one != place)
    (place / "answer.parquet").unlink()
    assert isinstance(look_up(cache, asked(cache)), Miss)


def test_nobody_else_may_list_the_answers_of_a_local_lake(cache: ResultCache, sqlite_store: str) -> None:
    assert run(cache, sqlite_store) == 0
    assert directories(cache)[0].parent.stat().st_mode & 0o7777 == 0o1733
