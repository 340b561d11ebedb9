"""Processes that commit to one table on a disk do so one after the other, and none waits for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.commit_locks import commit_lock
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.errors import CommitConflict

pytestmark = pytest.mark.spark


def test_a_commit_waits_for_another_process_and_names_the_lock_when_that_hangs(landing: Landing) -> None:
    landing.create()
    uri, held, done = landing.uri("orders"), threading.Event(), threading.Event()
    mine, other = KernelEngine.of_session(landing.spark), start_engine({})
    table = mine.table(uri)

    def hold() -> None:
        with commit_lock(other.jvm, uri):
            held.set()
            time.sleep(1)
        done.set()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(30)
    with (
        pytest.raises(CommitConflict, match=r"process \d+ on .* has committed .*_tidemark_commit\.lock"),
        commit_lock(mine.jvm, uri, seconds=0.1),
    ):
        pass
    assert table.commit(table.latest(), [], {"d": "1"}).version == 1
    assert done.wait(1)  # it came behind
    holder.join()


def test_threads_of_one_process_commit_one_after_the_other(landing: Landing) -> None:
    landing.create()
    uri, engine = landing.uri("orders"), KernelEngine.of_session(landing.spark)
    inside: list[int] = []
    most: list[int] = []

    def commit(number: int) -> None:
        with commit_lock(engine.jvm, uri):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.05)
            inside.remove(number)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


def test_the_lock_of_a_process_that_was_killed_is_free(landing: Landing) -> None:
    landing.create()
    uri, mine, other = landing.uri("orders"), KernelEngine.of_session(landing.spark), start_engine({})
    with pytest.raises(Exception), commit_lock(other.jvm, uri):  # noqa: B017, PT011 - whatever py4j says of a dead JVM
        other.jvm.java.lang.Runtime.getRuntime().halt(9)
    with commit_lock(mine.jvm, uri, seconds=5):
        assert (Path(uri.removeprefix("file://")) / "_delta_log" / "_tidemark_commit.lock").exists()
