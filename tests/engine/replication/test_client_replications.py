"""A replication of a real PostgreSQL, driven from a notebook: discovered, created, run, paused and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from tests.postgresql import PASSWORD, USER, PostgresServer
from tidemark.client import Lake, connect
from tidemark.errors import (
    InvalidArgument,
    ReplicationExists,
    ReplicationNotFound,
    SourceUnreachable,
)
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.replication import InvalidValues, ObjectState, ReplicationState

pytestmark = pytest.mark.spark


@dataclass
class Notebook:
    """A database with `orders` and `items`, and a client that knows it as `shop`."""

    spark: SparkSession
    server: PostgresServer
    database: str
    root: Path

    def connect(self, **how: Any) -> Lake:
        given = {"sources": {"shop": self.url, "away": self.url.replace(f":{self.server.port}/", ":1/")}, **how}
        control_store, lake_root = f"sqlite:///{self.root}/control.db", str(self.root / "lake")
        return connect(self.spark, control_store, **{"lake_root": lake_root, "who": "ann", **given})

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.server.port}/{self.database}"

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.server.sql(text, self.database)

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        found = self.spark.read.format("delta").load(f"{self.root}/lake/replicated/{table}")
        return sorted(tuple(row) for row in found.select("id", "note").collect())

    def slots(self) -> int:
        return len(self.sql("SELECT 1 FROM pg_replication_slots WHERE database = current_database()"))


@pytest.fixture
def notebook(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[Notebook]:
    made = Notebook(spark, source_server, source_server.new_database(), tmp_path)
    made.sql("CREATE TABLE orders (id int PRIMARY KEY, note text); CREATE TABLE items (LIKE orders INCLUDING ALL)")
    made.sql("CREATE TABLE log (line text); INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    yield made
    made.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")


def test_a_replication_goes_from_discovery_to_its_end_in_a_notebook(notebook: Notebook) -> None:
    lake = notebook.connect()
    found = lake.discover("shop", include=("public",))
    fitting = [one.name.text for one in found.tables if one.fits]
    assert (found.ready, fitting) == (True, ["public.items", "public.orders"])
    assert notebook.slots() == 0

    made = lake.create_replication("r", "shop", "replicated", include=fitting, invalid_values="null")
    assert (made.options.invalid_values, made.state) == (InvalidValues.NULL, ReplicationState.NOT_STARTED)
    prepared = lake.start_replication("r")
    assert (prepared.replication.state, notebook.slots()) == (ReplicationState.RUNNING, 1)

    copies = lake.backfill_replication("r")
    assert {name: None if one.report is None else one.report.rows for name, one in copies.items()} == {
        "public.items": 0, "public.orders": 2,
    }  # fmt: skip
    assert lake.backfill_replication("r") == {}
    notebook.sql("UPDATE orders SET note = 'c' WHERE id = 1; DELETE FROM orders WHERE id = 2")
    notebook.sql("INSERT INTO items VALUES (7, 'seven')")
    report = lake.capture_replication("r")
    assert report is not None
    assert {name: count for name, count in report.events.items() if count} == {"public.items": 1, "public.orders": 2}
    assert lake.capture_replication("r") is None
    assert all(one.error is None and one.reason is None for one in lake.apply_replication("r").values())
    assert notebook.rows("public_orders") == [(1, "c")]
    assert notebook.rows("public_items") == [(7, "seven")]

    (status,) = lake.replications()
    assert (status.replication.name, status.behind, status.alerts) == ("r", 0, ())
    assert [one.object.progress.done for one in status.objects if one.object.progress] == [0, 2]
    assert lake.pause_replication("R").state is ReplicationState.PAUSED
    assert lake.resume_replication("r").state is ReplicationState.RUNNING
    lake.drop_replication("r")
    lake.drop_replication("r", if_exists=True)
    with pytest.raises(ReplicationNotFound):
        lake.drop_replication("r")
    assert (lake.replications(), notebook.slots()) == ((), 0)
    assert notebook.rows("public_orders") == [(1, "c")]


def test_tables_are_copied_again_by_name_and_another_client_continues(notebook: Notebook) -> None:
    first = notebook.connect()
    first.create_replication("r", "shop", "replicated", include=["public.orders"])
    first.start_replication("r")
    first.backfill_replication("r")
    notebook.sql("INSERT INTO orders VALUES (3, 'd')")
    second = notebook.connect(who="bob")
    second.capture_replication("r")
    again = second.backfill_replication("r", ["public.orders"])["public.orders"]
    assert (again.report is not None and again.report.rows, notebook.rows("public_orders")[-1]) == (3, (3, "d"))
    second.apply_replication("r", ["public.orders"])
    status = second.replication_status("r")
    assert [(one.object.state, one.behind) for one in status.objects] == [(ObjectState.COMPLETED, False)]
    second.drop_replication("r")


def test_an_error_is_in_the_list_without_the_password(notebook: Notebook) -> None:
    lake = notebook.connect()
    lake.create_replication("r", "away", "replicated")
    assert lake.replication_errors("r") == ()
    for _ in range(2):
        with pytest.raises(SourceUnreachable):
            lake.start_replication("r")
    (error,) = lake.replication_errors("r")
    assert (error.object, error.reason, error.count) == (None, "SourceUnreachable", 2)
    assert PASSWORD not in error.message


def test_a_source_is_named_addressed_or_has_a_url_and_another_one_is_refused(notebook: Notebook) -> None:
    lake = notebook.connect()
    address = SourceAddress(SourceKind.POSTGRESQL, "127.0.0.1", notebook.server.port, notebook.database, USER, PASSWORD)
    looks = [lake.discover(one, include=("public.orders",)) for one in ("shop", notebook.url, address)]
    assert looks[0] == looks[1] == looks[2]
    for wrong in (
        "nobody",
        "oracle://a:b@c/d",
        "postgresql://host/database",
        f"postgresql://u:{quote(PASSWORD, safe='')}@host:none/d",
    ):
        with pytest.raises(InvalidArgument) as refused:
            lake.discover(wrong)
        assert PASSWORD not in str(refused.value)
    with pytest.raises(InvalidArgument, match="shop"):
        lake.create_replication("r", "nobody", "replicated")


def test_what_cannot_be_made_is_refused_before_anything_is_written(notebook: Notebook) -> None:
    lake = notebook.connect()
    with pytest.raises(InvalidArgument, match="no option is named nonsense"):
        lake.create_replication("r", "shop", "replicated", nonsense=1)
    with pytest.raises(InvalidArgument, match="merge, append_only"):
        lake.create_replication("r", "shop", "replicated", mode="upsert")
    with pytest.raises(InvalidArgument, match="lake_root"):
        notebook.connect(lake_root=None).create_replication("r", "shop", "replicated")
    assert lake.replications() == ()
    made = lake.create_replication("r", "shop", "replicated")
    assert lake.create_replication("R", "shop", "elsewhere", if_not_exists=True) == made
    with pytest.raises(ReplicationExists):
        lake.create_replication("r", "shop", "replicated")
