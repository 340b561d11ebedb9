"""A source has failed over: the store knows the new server with its position, and copies that are ahead of it. Or its
address leads to a standby for a moment.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.control.replication_model import ME, World
from tests.control.source_shop import Shop
from tests.ports import free_port
from tests.postgresql import LOGICAL, PostgresServer, postgresql_or_skip
from tidemark.control.store import ControlStore
from tidemark.errors import SourceRefused
from tidemark.replication.model.replication import ReplicationState
from tidemark.replication.store import replications
from tidemark.replication.store.replications import Captured
from tidemark.replication.worker.gaps import COPIED_AHEAD, mark_copied_ahead
from tidemark.replication.worker.status import history


def test_a_position_of_another_server_is_stored_with_its_gtids_and_kept_in_the_history(
    copied_store: ControlStore, tmp_path: Path
) -> None:
    world = World(copied_store, tmp_path)
    world.start("s.orders")
    known = world.replication
    assert known.captured is not None
    for batches, server, gtids in ((1, None, "0-1-5"), (2, "0-2", "0-2-6"), (3, "0-2", "0-2-7")):
        found = world.replication
        captured = Captured(known.captured, world.store.clock(), batches, 0, gtids, server)
        assert world.store.write(lambda c, f=found, new=captured: replications.advance(c, f, new, by=ME))  # type: ignore[misc]
        assert (world.replication.gtids, world.replication.system_id) == (gtids, server or known.system_id)
    acts = [one.act for one in history(world.store, "r")]
    assert (acts.count("fail over"), acts.count("capture")) == (1, 3)


def test_a_copy_that_is_ahead_of_what_was_captured_needs_a_backfill(copied_store: ControlStore, tmp_path: Path) -> None:
    world = World(copied_store, tmp_path)
    world.start("s.orders", "s.items")
    world.backfill("s.items")
    world.source.commit("id of s.items", "id of s.orders")
    world.capture()
    world.source.commit("id of s.orders")
    world.backfill("s.orders")  # as of now, which was not captured
    world.store.write(lambda connection: mark_copied_ahead(connection, world.store, world.replication, by=ME))
    found = {name: world.object(name).needs_backfill for name in ("s.orders", "s.items")}
    assert found == {"s.orders": COPIED_AHEAD, "s.items": None}


@contextmanager
def standby_of(stopped: PostgresServer) -> Iterator[PostgresServer]:
    """A copy of the server, without its slots, as pg_basebackup makes it."""
    data = stopped.data.parent / "standby"
    subprocess.run(["cp", "-a", stopped.data, data], check=True)
    for slot in (data / "pg_replslot").iterdir():
        shutil.rmtree(slot)
    (data / "standby.signal").touch()
    standby = PostgresServer(stopped.programs, data, free_port(), stopped.password)
    with (data / "postgresql.conf").open("a") as settings:
        settings.write(f"port = {standby.port}\n")
    standby.start()
    try:
        yield standby
    finally:
        standby.stop()


def test_a_standby_that_answers_in_place_of_its_primary_fails_that_run_alone(copied_store: ControlStore) -> None:
    with postgresql_or_skip(LOGICAL) as primary:
        shop = Shop(copied_store, primary)
        shop.prepare()
        primary.stop()
        with standby_of(primary) as shop.server:
            for act in (shop.prepare, shop.capture):
                with pytest.raises(SourceRefused, match="it is a standby"):
                    act()
                assert shop.replication.state is ReplicationState.FAILED
        primary.start()
        shop.server = primary
        shop.prepare()
        shop.capture()
        assert shop.replication.state is ReplicationState.RUNNING
