"""The sensors of replications wait for what is replicated, and for nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.control.replication_model import ME, Ends, World, found
from tidemark.control.store import ControlStore
from tidemark.errors import BackfillInterrupted, InvalidArgument, SourceUnreachable
from tidemark.replication.model.replication import ReplicationOptions
from tidemark.replication.worker import objects
from tidemark.sensors.replication import BackfillDoneSensor, ReplicationLagSensor

pytestmark = pytest.mark.airflow


@pytest.fixture
def root(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    return tmp_path


def world_at(root: Path, *, backfill: bool = True) -> World:
    store = ControlStore(f"sqlite:///{root}/control.db")
    store.migrate()
    real = store.clock
    world = World(store, root, options=ReplicationOptions(target="lake", backfill=backfill))
    store.clock = real  # the sensors read the store by a clock of their own
    return world


def done(**more: Any) -> bool:
    return bool(BackfillDoneSensor(task_id="done", replication="r", **more).poke({}).is_done)  # type: ignore[typeddict-item]


def alarm(**more: Any) -> bool:
    return bool(ReplicationLagSensor(task_id="lag", replication="r", **more).poke({}).is_done)  # type: ignore[typeddict-item]


def test_only_what_is_replicated_is_waited_for(root: Path) -> None:
    world = world_at(root)
    assert not done()
    world.start("s.a", "s.gone")
    no_key = found("s.no_key", unsupported="no key")
    world.register(found("s.a"), no_key)
    assert not done()
    world.backfill("s.a")
    assert done()
    assert done(objects="s.a")
    assert not done(objects="s.no_key")
    assert not alarm(lag_seconds=3600)  # none of the others has a target


def test_one_that_needs_no_backfill_is_done(root: Path) -> None:
    world = world_at(root, backfill=False)
    world.start("s.a")
    assert done()
    objects.request_backfill(world.store, "r", ["s.a"], by=ME)
    assert not done()


def test_a_state_that_ends_the_wait_fails_it(root: Path) -> None:
    world = world_at(root)
    world.start("s.a", "s.b")
    objects.stop_backfill(world.store, "r", ["s.a"], by=ME)
    assert not done(fail_on="failed")
    with pytest.raises(BackfillInterrupted, match=r"s\.a"):
        done(fail_on=["stopped"])
    assert not done(fail_on="stopped", objects="s.b")
    with pytest.raises(SourceUnreachable):
        world.backfill("s.b", Ends.ERROR)
    with pytest.raises(BackfillInterrupted, match="it went away"):
        done(fail_on="failed")
    with pytest.raises(InvalidArgument, match="fail_on"):
        done(fail_on="pending")


def test_an_alarm_rings_over_a_limit_and_below_waits_for_the_opposite(root: Path) -> None:
    world = world_at(root)
    assert (alarm(lag_bytes=5), alarm(lag_bytes=5, below=True)) == (True, False)  # nothing is known before the start
    world.start("s.a")
    assert (alarm(lag_seconds=3600), alarm(lag_seconds=3600, below=True)) == (True, False)  # it has no target yet
    assert (alarm(lag_bytes=5), alarm(lag_bytes=5, below=True)) == (False, True)
    world.backfill("s.a")
    world.capture()
    world.apply("s.a")
    assert (alarm(lag_seconds=3600), alarm(lag_seconds=3600, below=True)) == (False, True)
    assert (alarm(lag_seconds=0), alarm(lag_seconds=0, below="true")) == (True, False)
    with pytest.raises(InvalidArgument, match="lag_seconds"):
        alarm()
