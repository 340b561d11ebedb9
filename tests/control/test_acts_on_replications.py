"""Acts on replications and their tables: backfills are requested, and a lost log is recovered on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.control.source_shop import Shop
from tests.control.test_acts_with_fields import WHY, history, offers
from tests.postgresql import PostgresServer
from tidemark.control.object_acts import Act, ActTools, act_on
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ActFieldsInvalid,
    ActNotOffered,
    ActTooLate,
    ActUnfinished,
    InvalidArgument,
    ObjectChanged,
    ObjectNotFound,
    ReplicationNotFound,
    ReplicationRefused,
)
from tidemark.replication.model.replication import Actor, Replication, ReplicationState
from tidemark.replication.sources.postgresql.source import PostgresSource
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import drop_replication, get_replication
from tidemark.streams.worker.opening import open_table


@pytest.fixture
def shop(source_server: PostgresServer, copied_store: ControlStore) -> Iterator[Shop]:
    made = Shop(copied_store, source_server)
    made.replicated()
    yield made
    with suppress(ReplicationNotFound):
        made.drop()


def lost(shop: Shop) -> None:
    lifecycle.failed_permanently(shop.store, "r", error="the slot is gone", by=Actor("test"))


def wish(shop: Shop, act: str, kind: str = "replication", name: str = "r", **values: Any) -> Act:
    shown = offers(shop.store, kind, name)
    return Act(kind, shown.uid, act, shown.revision, "ann", WHY, values)


def do(shop: Shop, asked: Act, in_time: Callable[[], bool] = lambda: True) -> None:
    tools = ActTools(open_table, source=lambda _: shop.source, event_log=lambda uid: f"/nowhere/{uid}")
    act_on(shop.store, tools, asked, in_time=in_time)


def test_a_replication_is_recovered_from_now_and_tables_that_are_kept_continue(shop: Shop) -> None:
    lost(shop)
    before = shop.replication.captured
    do(shop, wish(shop, "recover", position="now", keep=["public.u"]))
    assert shop.replication.state is ReplicationState.RUNNING
    assert before is not None
    assert shop.replication.captured is not None
    assert shop.replication.captured >= before
    assert (shop.object("public.t").state.value, shop.object("public.u").needs_backfill) == ("pending", None)
    (done,) = history(shop.store)
    assert done.values == {"keep": ["public.u"], "position": "now"}


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({}, ActFieldsInvalid),
        ({"position": "tomorrow"}, InvalidArgument),
        ({"position": "now", "keep": ["public.x"]}, ObjectNotFound),
    ],
)
def test_a_recovery_that_is_refused_touches_nothing(shop: Shop, values: dict[str, Any], error: type[Exception]) -> None:
    lost(shop)
    slot = shop.source.slot_position(shop.replication)
    with pytest.raises(error):
        do(shop, wish(shop, "recover", **values))
    assert shop.replication.state is ReplicationState.FAILED_PERMANENTLY
    assert shop.source.slot_position(shop.replication) == slot
    assert history(shop.store) == ()


def test_a_recovery_that_has_changed_its_source_is_stored_however_late(shop: Shop) -> None:
    """Time is over once the slot has moved."""
    lost(shop)
    slot = shop.source.slot_position(shop.replication)
    shop.sql("INSERT INTO t VALUES (99)")
    do(shop, wish(shop, "recover", position="now"), lambda: shop.source.slot_position(shop.replication) == slot)
    assert shop.source.slot_position(shop.replication) != slot
    assert shop.replication.state is ReplicationState.RUNNING
    assert [one.act for one in history(shop.store)] == ["recover"]


def test_a_recovery_that_nobody_waits_for_any_more_changes_no_source(shop: Shop) -> None:
    lost(shop)
    slot = shop.source.slot_position(shop.replication)
    shop.sql(f"DROP PUBLICATION {shop.replication.publication}", "INSERT INTO t VALUES (99)")
    with pytest.raises(ActTooLate):
        do(shop, wish(shop, "recover", position="now"), lambda: False)
    assert shop.source.slot_position(shop.replication) == slot
    assert shop.source.published(shop.replication) == frozenset()
    assert shop.replication.state is ReplicationState.FAILED_PERMANENTLY
    assert history(shop.store) == ()


def test_only_a_replication_that_failed_is_recovered(shop: Shop) -> None:
    with pytest.raises(ActNotOffered):
        do(shop, wish(shop, "recover", position="now"))


def test_all_tables_of_a_replication_or_some_are_backfilled_by_the_next_run(shop: Shop) -> None:
    asked = wish(shop, "backfill", tables=["public.t"])
    do(shop, asked)
    assert [shop.object(name).state.value for name in ("public.t", "public.u")] == ["pending", "completed"]
    with pytest.raises(ObjectChanged):
        do(shop, asked)
    do(shop, wish(shop, "backfill"))
    assert shop.object("public.u").state.value == "pending"
    with pytest.raises(ObjectNotFound):
        do(shop, wish(shop, "backfill", tables=["public.x"]))


def test_a_backfill_of_one_table_is_requested_and_stopped(shop: Shop) -> None:
    of_t = {"kind": "replicated_table", "name": "r/public.t"}
    do(shop, wish(shop, "backfill", tables=["public.t"]))
    with pytest.raises(ActNotOffered):
        do(shop, wish(shop, "restart", **of_t))
    do(shop, wish(shop, "stop", **of_t))
    assert shop.object("public.t").state.value == "stopped"
    do(shop, wish(shop, "backfill", **of_t))
    assert shop.object("public.t").state.value == "pending"
    assert [one.act for one in history(shop.store)] == ["backfill", "stop", "backfill"]


def test_a_replication_is_dropped_in_its_source_and_in_the_store(shop: Shop) -> None:
    replication = shop.replication
    do(shop, wish(shop, "drop"))
    with pytest.raises(ReplicationNotFound):
        get_replication(shop.store, "r")
    assert shop.source.slot_position(replication) is None
    assert [one.act for one in history(shop.store)] == ["drop"]


def test_a_drop_whose_source_does_not_answer_is_done_without_it(shop: Shop) -> None:
    replication = shop.replication
    away = ActTools(open_table, source=lambda _: PostgresSource(shop.server.address(shop.database, port=1)))
    with pytest.raises(ActUnfinished, match=r"is in the history, but its next step failed: .*cannot be reached"):
        act_on(shop.store, away, wish(shop, "drop"))
    assert get_replication(shop.store, "r") == replication
    act_on(shop.store, away, wish(shop, "drop", without_source=True))
    with pytest.raises(ReplicationNotFound):
        get_replication(shop.store, "r")
    assert [one.act for one in history(shop.store)] == ["drop", "drop"]
    shop.source.drop(replication)


def test_a_drop_without_the_connection_of_its_source_does_not_begin(shop: Shop) -> None:
    def missing(_: Replication) -> Any:
        raise ReplicationRefused(replication="r", problem="its connection pg does not exist.")

    with pytest.raises(ReplicationRefused):
        act_on(shop.store, ActTools(open_table, source=missing), wish(shop, "drop"))
    assert history(shop.store) == ()
    with pytest.raises(ReplicationRefused, match="its slot and publication are dropped in the source first"):
        drop_replication(shop.store, "r", by=Actor("test"))
