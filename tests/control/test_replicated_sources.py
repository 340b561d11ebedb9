"""Replications of a real server, which changes behind the store's back: nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import pytest

from tests.control.replication_model import ME
from tests.control.source_shop import EVERYTHING, PATIENCE, Shop
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import ObjectNotFound, ReplicationRefused, SourceIsAnother, SourceSetBack
from tidemark.replication.model.replication import FoundObject, ObjectState, Replication, ReplicationState, Selection
from tidemark.replication.planning.positions import lsn_of, position_of_lsn
from tidemark.replication.sources.postgresql.source import PostgresSource
from tidemark.replication.store.schema import replicated_objects as objects_table
from tidemark.replication.store.schema import replications as replications_table
from tidemark.replication.worker import lifecycle, preparing


class Killed(Exception):
    """Stands for the end of the process."""


def _killed_at(point: str) -> Callable[[str], None]:
    def failpoint(reached: str) -> None:
        if reached == point:
            raise Killed

    return failpoint


@pytest.fixture
def shop(copied_store: ControlStore, source_server: PostgresServer) -> Iterator[Shop]:
    made = Shop(copied_store, source_server)
    yield made
    made.drop()


def test_a_table_that_comes_back_into_the_publication_needs_a_backfill(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.replicated()
    shop.select(Selection(include=("public",), exclude=("public.t",)))
    with monkeypatch.context() as killed:
        killed.setattr(preparing, "failpoint", _killed_at("prepare.published"))
        with pytest.raises(Killed):
            shop.prepare()
    shop.sql("INSERT INTO t VALUES (1, 'lost')")
    shop.select(EVERYTHING)
    with monkeypatch.context() as killed:
        killed.setattr(preparing, "failpoint", _killed_at("prepare.published"))
        with pytest.raises(Killed):
            shop.prepare()
    shop.prepare()
    one = shop.object("public.t")
    assert (one.state, "publication lacked it" in str(one.needs_backfill)) == (ObjectState.PENDING, True)
    assert shop.object("public.u").needs_backfill is None


@pytest.mark.parametrize(
    "act",
    ["DROP TABLE t", "SET TABLE t WHERE (id > 5), u", "SET TABLE t (id), u", "SET (publish = 'insert')"],
    ids=["out", "rows", "columns", "kinds"],
)
def test_what_somebody_takes_out_of_the_publication_needs_a_backfill(shop: Shop, act: str) -> None:
    shop.replicated()
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    shop.sql(f"ALTER PUBLICATION {shop.replication.publication} {act}")
    shop.prepare()
    assert "publication lacked it" in str(shop.object("public.t").needs_backfill)
    assert (shop.object("public.u").needs_backfill is None) == ("publish" not in act)


def test_a_table_whose_excluded_column_is_selected_again_needs_a_backfill(shop: Shop) -> None:
    shop.select(Selection(include=("public",), exclude=("public.t.secret",)))
    shop.replicated()
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    shop.select(EVERYTHING)
    shop.prepare()
    one = shop.object("public.t")
    assert (one.state, "(secret)" in str(one.needs_backfill)) == (ObjectState.PENDING, True)


def test_a_recovery_that_is_refused_leaves_slot_and_publication(shop: Shop) -> None:
    shop.replicated()
    known = shop.replication
    lifecycle.failed_permanently(shop.store, "r", error="the slot is lost", by=ME)
    shop.sql("INSERT INTO u VALUES (1)", f"ALTER PUBLICATION {known.publication} DROP TABLE t")
    with pytest.raises(ObjectNotFound, match=r"public\.tt"):
        shop.recover("now", keep=("public.tt",))
    with pytest.raises(ReplicationRefused, match="log ends at"):
        shop.recover("FFFF/0")
    assert shop.source.slot_position(known) == known.captured
    assert len(shop.source.published(known)) == 1
    assert shop.recover("now", keep=("public.u",)).state is ReplicationState.RUNNING


class Overtaken(PostgresSource):
    """Another recovery comes before the publication is renewed: as a whole, or up to its new slot."""

    def __init__(self, shop: Shop, *, whole: bool) -> None:
        super().__init__(shop.server.address(shop.database))
        self.shop, self.whole = shop, whole

    def publish(
        self, replication: Replication, selected: Sequence[FoundObject], *, leave: Collection[str] = ()
    ) -> tuple[str, ...]:
        if self.whole:
            self.shop.recover("now")
        else:
            self.shop.source.drop_slot(replication)
            self.shop.source.make_slot(replication, patience=PATIENCE)
        self.shop.sql("INSERT INTO u VALUES (7)")
        return super().publish(replication, selected, leave=leave)


@pytest.mark.parametrize("whole", [True, False])
def test_of_two_recoveries_at_once_the_later_one_leaves_the_slot_of_the_other(shop: Shop, whole: bool) -> None:
    shop.replicated()
    shop.sql("INSERT INTO u VALUES (1)")
    lifecycle.failed_permanently(shop.store, "r", error="the slot is lost", by=ME)
    overtaken = Overtaken(shop, whole=whole)
    with pytest.raises(ReplicationRefused, match="another recovery came first"):
        shop.recover("now", source=overtaken)
    if not whole:  # the other one has died then, and is repeated
        shop.recover("now")
    known = shop.replication
    assert known.state is ReplicationState.RUNNING
    assert shop.source.slot_position(known) == known.captured


def test_another_cluster_is_known_by_the_names_of_its_tables(shop: Shop) -> None:
    shop.replicated()
    ids = {name: shop.object(name).source_id for name in ("public.t", "public.u")}
    swapped = {"public.t": ids["public.u"], "public.u": ids["public.t"]}
    for name, other in swapped.items():
        shop.set(objects_table, {"table_name": name.removeprefix("public.")}, source_id=other)
    shop.set(replications_table, system_id="another cluster")
    with pytest.raises(SourceIsAnother):
        shop.prepare()
    shop.recover("now", keep=("public.t", "public.u"))
    assert {name: shop.object(name).source_id for name in ids} == ids
    prepared = shop.prepare()
    assert prepared.registered is not None
    assert (prepared.registered.renamed, prepared.registered.recreated) == ({}, ())
    assert [shop.object(name).needs_backfill for name in ids] == [None, None]


def test_a_source_that_was_set_back_fails_for_good_and_keeps_its_changes(shop: Shop) -> None:
    shop.replicated()
    known = shop.replication
    assert known.captured is not None
    shop.set(replications_table, captured=position_of_lsn(lsn_of(known.captured) + (64 << 20)))
    shop.sql("INSERT INTO u VALUES (1)")
    with pytest.raises(SourceSetBack, match="set back"):
        shop.capture()
    assert shop.replication.state is ReplicationState.FAILED_PERMANENTLY
    assert shop.source.slot_position(known) == known.captured
    assert shop.source.has_changes(known, shop.source.current_position())
