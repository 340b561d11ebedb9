"""A source has failed over: the store knows the new server with its position, and copies that are ahead of it."""

from __future__ import annotations

from pathlib import Path

from tests.control.replication_model import ME, World
from tidemark.control.store import ControlStore
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
