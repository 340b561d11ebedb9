"""A suspended clustered table is in the overview with its way out, and is resumed there. No log is read."""

from __future__ import annotations

from tests.control.change_stream_model import Clock
from tests.control.kept_objects import drifted
from tidemark.clustering.model.tables import ClusteredTable, Goal
from tidemark.clustering.store import tables
from tidemark.control.object_acts import Act, ActTools, act_on
from tidemark.control.object_list import ObjectsWish
from tidemark.control.store import ControlStore
from tidemark.model.streams import TableRef
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Need, needs_page
from tidemark.streams.worker.opening import open_table


def needs(store: ControlStore) -> tuple[Need, ...]:
    return store.read(
        lambda c: needs_page(c, NOTHING_KNOWN, ObjectsWish(), after=None, limit=9, now=store.clock())
    ).needs


def test_a_suspended_table_needs_somebody_until_it_is_resumed(copied_store: ControlStore) -> None:
    store = copied_store
    store.clock = Clock()
    table = ClusteredTable(
        store.new_id(), TableRef("shop.orders", "file:///lake/orders", "id"), ("day",), store.clock(), Goal()
    )
    store.write(lambda c: tables.register_table(c, table, by="ann"))
    assert needs(store) == ()
    store.write(lambda c: tables.suspend_table(c, table, why="the night is full, by ann", by="ann"))
    (found,) = needs(store)
    assert (found.need, found.shown.state) == ("stopped", "suspended")
    assert found.reason(found.shown) == "it is suspended: the night is full, by ann"
    assert found.advice.commands == ("airflow tidemark clustering resume shop.orders",)
    assert [one.name for one in found.acts] == ["resume"]
    act_on(
        store, ActTools(open_table), Act("clustered_table", table.uid, "resume", found.revision, "bob", "it is calm")
    )
    assert needs(store) == ()
    assert store.read(tables.live_tables)[0].suspended is None
    assert drifted(store) == []
