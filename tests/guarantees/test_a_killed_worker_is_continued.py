"""A worker that is killed at any of its named lines: the retry delivers each change once and announces the result."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tidemark.failpoints import KILL_AT, KILL_ONCE, POINTS, failpoint
from tidemark.streams.worker.begin import get_transaction

from .world import World, key_of

WORKER_POINTS = ["begin.before", "begin.stored", "submit.stored", "commit.before", "commit.stored"]


def killed(world: World, point: str) -> int:
    """Consume in a process group of its own that is killed at `point`; returns the signal."""
    child = os.fork()
    if child == 0:
        os.setpgrp()
        os.environ[KILL_AT] = point
        try:
            world.consume("one")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for table in world.by_uri.values():
        table.reload()
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_retry_after_a_kill_delivers_once(world: World, point: str) -> None:
    world.source.append()
    assert killed(world, point) == signal.SIGKILL
    world.source.append()
    moved = world.offset()
    result = world.consume("one").result
    assert world.holds(0) == world.holds(1) == dict.fromkeys(range(1, result.windows[0].to_version + 1), 1)
    assert world.offset() == result.windows[0].to_version
    assert get_transaction(world.store, key_of("one")).result == result
    assert (moved == 1) == (point == "commit.stored")
    world.consume("two")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)


def test_a_point_kills_once_and_only_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = tmp_path / "killed"
    once.touch()
    monkeypatch.setenv(KILL_ONCE, str(once))
    for point in POINTS:
        monkeypatch.setenv(KILL_AT, point)
        failpoint(point)  # the mark is there: nothing happens
    monkeypatch.delenv(KILL_ONCE)
    monkeypatch.setenv(KILL_AT, "elsewhere")
    for point in POINTS:
        failpoint(point)
