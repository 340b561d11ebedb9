"""A replication that reads an existing publication and slot: targets are their source although somebody takes a table
out of the publication for a while, and of what is published beside it nothing reaches the lake.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.replication_tables import SCHEMA
from tests.guarantees.replication_world import ReplicationWorld, made_source
from tests.guarantees.replication_writers import opened
from tests.postgresql import PostgresServer
from tidemark.errors import ReplicationInvalid, SlotLost, SourceRefused
from tidemark.replication.model.replication import ObjectState, ReplicationState
from tidemark.replication.worker.recovering import recover_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.guarantees.replication_writers import Writers
    from tidemark.model.source_address import SourceAddress

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PUBLICATION = "theirs"
ORDERS, LINES = f"{SCHEMA}.orders", f"{SCHEMA}.lines"


class Shop:
    """The source, and a replication of two tables by a publication that has a third."""

    def __init__(self, spark: SparkSession, server: PostgresServer, home: Path) -> None:
        self.address: SourceAddress
        self.writers: Writers
        self.address, tables, self.writers = made_source(server, 7, ("orders", "lines"), without=("shift", "swap"))
        self.slot = f"{self.address.database.lower()}_theirs"
        self.sql("CREATE TABLE public.private (id int PRIMARY KEY)")
        self.sql(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {ORDERS}, public.private")
        self.make_slot()
        self.write(40)
        self.world = ReplicationWorld(
            spark, self.address, tables, home, publication=PUBLICATION, slot=self.slot, max_events=500_000
        )

    def sql(self, *texts: str) -> None:
        with opened(self.address) as connection, connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)

    def make_slot(self) -> None:
        self.sql(f"SELECT pg_create_logical_replication_slot('{self.slot}', 'pgoutput')")

    def write(self, steps: int) -> None:
        self.writers.run(steps)
        self.writers.settle()
        self.sql("INSERT INTO public.private SELECT coalesce(max(id), 0) + 1 FROM public.private")

    def close(self) -> None:
        self.writers.settle()
        self.world.store.close()
        self.sql(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{self.slot}'"
        )


@pytest.fixture
def shop(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(spark, source_server, tmp_path)
    yield shop
    shop.close()


def test_no_change_is_lost_whatever_becomes_of_the_publication(shop: Shop) -> None:
    with pytest.raises(ReplicationInvalid, match=f'ALTER PUBLICATION "{PUBLICATION}" ADD TABLE ONLY "shop"."lines"'):
        shop.world.prepare()
    shop.sql(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {LINES}")
    shop.world.turn("first")

    shop.sql(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE {LINES}")  # between two runs
    shop.write(30)
    shop.sql(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {LINES}")
    shop.world.prepare()
    lines, orders = shop.world.objects()["lines"], shop.world.objects()["orders"]
    assert f"publication {PUBLICATION} was altered" in str(lines.needs_backfill)
    assert (lines.state, orders.state, orders.needs_backfill) == (ObjectState.PENDING, ObjectState.COMPLETED, None)

    shop.sql(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE {ORDERS}")  # during a run
    shop.write(30)
    shop.world.turn("without")
    assert shop.world.objects()["orders"].state is ObjectState.UNSUPPORTED
    shop.sql(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {ORDERS}")
    shop.writers.finish()
    shop.world.catch_up()
    shop.world.require_same()
    tables = {row.table for row in shop.world._events().select("source_metadata.table").distinct().collect()}
    assert tables - {None} == {"orders", "lines"}


def test_a_slot_that_is_gone_is_made_by_its_keeper_and_every_object_is_backfilled(shop: Shop) -> None:
    shop.sql(f"ALTER PUBLICATION {PUBLICATION} ADD TABLE {LINES}")
    shop.world.prepare()
    shop.sql(f"SELECT pg_drop_replication_slot('{shop.slot}')")
    with pytest.raises(SlotLost, match="is gone"):
        shop.world.prepare()
    assert shop.world.replication.state is ReplicationState.FAILED_PERMANENTLY
    with pytest.raises(SourceRefused, match=f"pg_create_logical_replication_slot\\('{shop.slot}'"):
        _recover(shop.world)
    shop.make_slot()
    _recover(shop.world)
    assert shop.world.replication.state is ReplicationState.RUNNING
    assert {one.state for one in shop.world.objects().values()} == {ObjectState.PENDING}


def _recover(world: ReplicationWorld) -> None:
    recover_from(
        world.store,
        world.replication.name,
        position="now",
        source=world.source,
        event_log=lambda name: f"{world.home}/events-{name}",
        by=world.by("recover"),
    )
