"""A stream whose transaction cannot go on is freed, or finished on other targets, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.airflow.command_line import Said, run_airflow
from tests.guarantees.world import LONG, World, key_of
from tidemark.control.object_acts import newest_acts
from tidemark.streams.worker.rollback import rollback

pytestmark = pytest.mark.airflow


Streams = Callable[..., Said]


@pytest.fixture
def streams(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Streams:
    """`airflow tidemark streams …` of an installation whose store and lake lie in a directory."""
    monkeypatch.delenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", raising=False)

    def said(root: Path, *arguments: str) -> Said:
        monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{root}/control.db")
        monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(root))
        return run_airflow("tidemark", "streams", *arguments)

    return said


def test_a_transaction_that_wrote_nothing_is_redone_and_released(tmp_path: Path, streams: Streams) -> None:
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    world.clock.now = datetime.now(UTC)
    world.stream()
    world.source.append()
    world.open("one")
    redone = streams(tmp_path, "redo", "s")
    assert (redone.returncode, str(key_of("one")) in redone.stdout) == (0, True)
    assert world.open("one").plan.statements[0].txn_version == 2
    assert "the stream s is free" in streams(tmp_path, "release", "s").stdout
    again = streams(tmp_path, "release", "s")
    assert (again.returncode, "TransactionNotFound" in again.stderr) == (1, True)
    assert world.consume("two").result.windows[0].to_version == 1


def test_what_was_submitted_and_left_is_finished_by_hand(tmp_path: Path, streams: Streams) -> None:
    """All is written and reported, and the worker died before its commit, so that the command needs no Spark."""
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    world.clock.now = datetime.now(UTC)
    world.stream()
    world.source.append()
    world.submit(world.open("one"))
    locked = streams(tmp_path, "finish", "s")
    assert (locked.returncode, "StreamLocked" in locked.stderr, "worker of one" in locked.stderr) == (1, True, True)
    rollback(world.store, key_of("one"))
    finished = streams(tmp_path, "finish", "s")
    assert (finished.returncode, f"Transaction {key_of('one')} is finished: s (0, 1]" in finished.stdout) == (0, True)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
    again = streams(tmp_path, "finish", "s")
    assert (again.returncode, "nothing to finish" in again.stdout) == (0, True)


def test_a_window_that_can_never_be_finished_is_given_up(tmp_path: Path, streams: Streams) -> None:
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    world.clock.now = datetime.now(UTC) - LONG
    world.stream()
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.clock.now = datetime.now(UTC)
    abandon = ("abandon", "s", "--why", "its files are gone", "--output", "json")
    asked = streams(tmp_path, *abandon, "--dry-run")
    (row,) = json.loads(asked.stdout)
    assert (row["written"], row["without"], row["done"]) == (world.targets[0].uri, world.targets[1].uri, "False")
    assert world.offset() == 0
    (row,) = json.loads(streams(tmp_path, *abandon, "--yes").stdout)
    assert (row["from"], row["to"], row["done"], world.offset()) == ("0", "1", "True", 1)
    assert "its files are gone" in world.history()[-1].why
    done = world.store.read(lambda connection: newest_acts(connection, kind="stream", uid=None, limit=9))
    assert [(one.act, one.why) for one in done] == [("abandon", "its files are gone")]


def test_streams_are_exported_and_imported_and_a_refusal_is_said(tmp_path: Path, streams: Streams) -> None:
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    uid = world.stream().uid
    document = tmp_path / "streams.json"
    assert streams(tmp_path, "export", "--stream", "s", "--output", str(document)).returncode == 0
    taken = streams(tmp_path, "import", str(document))
    assert (taken.returncode, "StreamExists" in taken.stderr) == (1, True)
    kept = streams(tmp_path, "import", str(document), "--if-not-exists", "--dry-run")
    assert (kept.returncode, "s: would be kept" in kept.stdout) == (0, True)
    (tmp_path / "new").mkdir()
    moved = streams(tmp_path / "new", "import", str(document))
    assert (moved.returncode, "s: created" in moved.stdout) == (0, True)
    assert uid in streams(tmp_path / "new", "export").stdout
