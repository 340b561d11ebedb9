"""A capture whose worker died holds the source's slot in the cluster: the next attempt waits for it before it looks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from tests.control.replication_model import ME, Ends, World
from tidemark.errors import SlotBusy
from tidemark.model.jobs import JobResult
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.replication import LogPosition, Replication
from tidemark.replication.worker.capture import capture
from tidemark.streams.worker.clusters import LeftDriver, owner_of
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

KEY = TransactionKey("dag", "run-9", "capture")


@dataclass
class LeftInACluster:
    """A cluster in which a capture lives, until somebody has waited for it."""

    lives: bool = True
    owners: list[str] = field(default_factory=list)
    name: str = "a cluster"

    def end(self, job_id: str) -> bool:
        return False

    def wait_for(self, driver: LeftDriver) -> JobResult | None:
        raise AssertionError("it has no row")

    def take_up(self, owner: str, *, about: str, deadline: datetime) -> None:
        self.owners.append(owner)
        self.lives = False

    def end_registered(self, owner: str) -> None:
        raise AssertionError("it has not failed")


@pytest.mark.parametrize("key", [KEY, None])
def test_the_slot_is_looked_at_once_the_capture_before_has_ended(
    replication_world: World, key: TransactionKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, cluster = replication_world, LeftInACluster()
    world.replicated("s.a")
    world.source.commit("id of s.a")
    free = type(world.source).require_ours

    def require_ours(source: object, replication: Replication) -> LogPosition:
        if cluster.lives:
            raise SlotBusy(slot=replication.slot, pid=7)
        return free(world.source, replication)

    monkeypatch.setattr(type(world.source), "require_ours", require_ours)
    plain = Runtime(world.store, run=world.runner(Ends.WELL), paths=JobPaths("/w", "/x"))
    runtime = replace(plain, host=cluster, cluster=cluster)
    if key is None:
        with pytest.raises(SlotBusy):
            capture(runtime, world.name, source=world.source, by=ME)
        return
    report = capture(runtime, world.name, source=world.source, by=ME, key=key)
    assert report is not None
    assert report.events == {"s.a": 1}
    assert cluster.owners == [owner_of(world.store.store_id, KEY)]
