"""Acts on replications and their tables: backfills are requested, and a lost log is recovered on a real server."""

from __future__ import annotations

from collections.abc import Iterator
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
    InvalidArgument,
    ObjectChanged,
    ObjectNotFound,
    ReplicationNotFound,
    SourceUnreachable,
)
from tidemark.replication.model.replication import Actor, Replication, ReplicationState
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import get_replication
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


def do(shop: Shop, asked: Act) -> None:
    tools = ActTools(open_table, source=lambda _: shop.source, event_log=lambda uid: f"/nowhere/{uid}")
    act_on(shop.store, tools, asked)


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
    away = ActTools(open_table, source=_away)
    with pytest.raises(SourceUnreachable):
        act_on(shop.store, away, wish(shop, "drop"))
    assert get_replication(shop.store, "r") == replication
    act_on(shop.store, away, wish(shop, "drop", without_source=True))
    with pytest.raises(ReplicationNotFound):
        get_replication(shop.store, "r")
    assert [one.act for one in history(shop.store)] == ["drop", "drop"]
    shop.source.drop(replication)


def _away(replication: Replication) -> Any:
    raise SourceUnreachable(source=replication.source_conn_id, problem="no route to host")
