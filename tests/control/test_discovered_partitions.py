"""What a look at a real source tells of single partitions, whose DDL makes no event."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.control.source_shop import Shop
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.replication.planning.seen_tables import REWRITTEN, WENT
from tidemark.replication.store.schema import replicated_objects as objects_table
from tidemark.replication.worker.status import describe


@pytest.fixture
def shop(copied_store: ControlStore, source_server: PostgresServer) -> Iterator[Shop]:
    made = Shop(copied_store, source_server)
    yield made
    made.drop()


def alerts(shop: Shop) -> list[str]:
    return list(describe(shop.store, "r").alerts)


def partitioned(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p VALUES (1), (11)",
    )
    shop.replicated()
    shop.set(objects_table, writes=1)
    shop.prepare()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("DROP TABLE p_1", WENT.format(names="public.p_1")),
        ("TRUNCATE p_1", REWRITTEN.format(names="public.p_1")),
    ],
)
def test_a_partition_that_went_or_was_truncated_is_an_alert_until_the_next_backfill(
    shop: Shop, text: str, told: str
) -> None:
    partitioned(shop)
    assert alerts(shop) == []
    shop.sql(text, "CREATE TABLE p_3 PARTITION OF p FOR VALUES FROM (20) TO (30)", "INSERT INTO p VALUES (21)")
    for _ in range(2):
        shop.prepare()
        assert (alerts(shop), shop.object("public.p").needs_backfill) == ([f"public.p: {told}"], None)
    shop.set(objects_table, seen=None)  # as after a backfill, which knows the catalog of its snapshot
    shop.prepare()
    assert alerts(shop) == []


@pytest.mark.parametrize("empty", [False, True])
def test_a_partition_that_was_attached_with_rows_flags_its_table(shop: Shop, empty: bool) -> None:
    """Also one of which the copy was empty, and which has no event."""
    partitioned(shop)
    if empty:
        shop.set(objects_table, progress=json.dumps({"expected": 0, "done": 0, "at": "2026-01-01T00:00:00+00:00"}))
    shop.sql(
        "CREATE TABLE x (LIKE p INCLUDING ALL)",
        "INSERT INTO x VALUES (21)",
        "ALTER TABLE p ATTACH PARTITION x FOR VALUES FROM (20) TO (30)",
    )
    shop.prepare()
    assert "partition public.x was attached with rows" in str(shop.object("public.p").needs_backfill)


def test_what_is_seen_of_partitions_is_told_once(shop: Shop) -> None:
    shop.sql("CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    assert [one.partition(":")[0] for one in shop.prepare().warnings] == ["public.p is partitioned"]
    assert shop.prepare().warnings == ()
