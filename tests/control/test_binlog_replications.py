"""The life of a replication of a MariaDB in the control store: begun, without news, on another server, recovered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.control.replication_model import ME
from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tidemark.control.store import ControlStore
from tidemark.errors import ReplicationInvalid, SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import ReplicationOptions, ReplicationState, Selection
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.mysql.connection import connect
from tidemark.replication.sources.mysql.log_files import visible_end
from tidemark.replication.sources.open import open_source
from tidemark.replication.store.schema import replicated_objects as objects_table
from tidemark.replication.worker import definitions, objects, status
from tidemark.replication.worker.catalog_changes import HIDDEN_OTHERWISE, NEW_BESIDE_HIDDEN
from tidemark.replication.worker.preparing import Prepared, prepare
from tidemark.replication.worker.recovering import recover_from


@dataclass
class Shop:
    server: BinlogServer
    database: str
    store: ControlStore
    root: Path

    def __post_init__(self) -> None:
        definitions.create_replication(
            self.store,
            name="r",
            kind=self.server.kind,
            source_conn_id="shop",
            selection=Selection((self.database,)),
            options=ReplicationOptions(target="lake", backfill=False),
            event_log=(self.root / "events").as_uri(),
            by=ME,
        )

    def prepare(self, address: SourceAddress | None = None) -> Prepared:
        def target(name: Any) -> TableRef:
            return TableRef(f"lake.{name.folded}", (self.root / name.folded).as_uri(), "")

        source = open_source(address or self.server.address())
        return prepare(self.store, "r", source=source, targets=target, by=ME)

    @property
    def names(self) -> dict[str, str]:
        return {one.name.table: one.source_id for one in objects.objects_of(self.store, "r")}


@pytest.fixture(scope="module")
def server() -> Iterator[BinlogServer]:
    with mariadb_or_skip() as server:
        yield server


@pytest.fixture
def shop(server: BinlogServer, copied_store: ControlStore, tmp_path: Path) -> Shop:
    database = server.new_database()
    server.sql(f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, v VARCHAR(9))")
    return Shop(server, database, copied_store, tmp_path)


def test_it_begins_at_what_is_visible_and_takes_up_its_tables(shop: Shop) -> None:
    shop.server.sql(f"CREATE VIEW {shop.database}.v AS SELECT 1 AS a")
    prepared = shop.prepare()
    assert prepared.replication.state is ReplicationState.RUNNING
    with connect(shop.server.address()) as connection:
        assert prepared.replication.captured == visible_end(connection, shop.server.address()).position
    assert (prepared.made, prepared.warnings) == ((), ())
    assert shop.names == {"orders": f"{shop.database}.orders"}
    shop.server.sql(f"RENAME TABLE {shop.database}.orders TO {shop.database}.old_orders")
    prepared = shop.prepare()
    assert prepared.registered is not None
    assert (prepared.registered.gone, prepared.registered.new) == (
        (f"{shop.database}.orders",),
        (f"{shop.database}.old_orders",),
    )


def test_a_hidden_column_that_is_renamed_stays_hidden_with_an_alert(shop: Shop) -> None:
    table = f"{shop.database}.orders"
    hidden = ReplicationOptions("lake", mask_columns=(f"{table}.V",))
    definitions.alter_options(shop.store, "r", hidden, by=ME)
    shop.prepare()
    shop.server.sql(f"ALTER TABLE {table} CHANGE v contact VARCHAR(9)")
    told = f"{table}: column contact came when v went, and may be the same, so it is masked"
    for _ in range(2):
        shop.prepare()
        assert [one.startswith(told) for one in status.describe(shop.store, "r").alerts] == [True]
    shop.server.sql(f"ALTER TABLE {table} ADD city VARCHAR(9)")
    shop.prepare()
    new = NEW_BESIDE_HIDDEN.format(name="city")
    assert f"{table}: {new}" in status.describe(shop.store, "r").alerts
    definitions.alter_options(shop.store, "r", replace(hidden, mask_columns=()), by=ME)
    shop.prepare()
    assert [one for one in status.describe(shop.store, "r").alerts if "contact" in one or "city" in one] == [
        f"{table} is to be backfilled: {HIDDEN_OTHERWISE.format(columns='contact')}"
    ]


@pytest.mark.parametrize("how", ["excluded", "masked"])
def test_a_column_that_is_hidden_later_needs_a_backfill_once(shop: Shop, how: str) -> None:
    pattern = (f"{shop.database}.orders.V",)
    shop.prepare()
    if how == "excluded":
        definitions.alter_selection(shop.store, "r", Selection((shop.database,), exclude=pattern), by=ME)
    else:
        options = ReplicationOptions("lake", backfill=False, mask_columns=pattern)
        definitions.alter_options(shop.store, "r", options, by=ME)
    shop.prepare()
    (orders,) = objects.objects_of(shop.store, "r")
    assert "hidden otherwise than before (v)" in str(orders.needs_backfill)
    shop.store.write(lambda connection: connection.execute(objects_table.update().values(needs_backfill=None)))
    shop.prepare()
    (orders,) = objects.objects_of(shop.store, "r")
    assert orders.needs_backfill is None


def test_it_does_not_begin_with_a_setting_that_is_wrong(shop: Shop) -> None:
    shop.server.sql("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        with pytest.raises(ReplicationInvalid, match="SET GLOBAL binlog_row_metadata = FULL"):
            shop.prepare()
    finally:
        shop.server.sql("SET GLOBAL binlog_row_metadata = FULL")
    assert shop.prepare().replication.state is ReplicationState.RUNNING


def test_after_a_failover_without_gtids_a_person_names_a_place_of_the_new_server(shop: Shop) -> None:
    """The objects that are kept continue there, in a new event log."""
    shop.prepare()
    with mariadb_or_skip(("--server-id=77",)) as other:
        other.sql(f"CREATE DATABASE {shop.database}")
        other.sql(f"CREATE TABLE {shop.database}.orders (id INT PRIMARY KEY, v VARCHAR(9))")
        with pytest.raises(SourceIsAnother, match="0-77"):
            shop.prepare(other.address())
        failed = definitions.get_replication(shop.store, "r")
        assert failed.state is ReplicationState.FAILED_PERMANENTLY
        with connect(other.address()) as connection:
            place = visible_end(connection, other.address())
        recovered = recover_from(
            shop.store,
            "r",
            position=place.text,
            source=open_source(other.address()),
            event_log=lambda uid: (shop.root / uid).as_uri(),
            by=ME,
            keep=[f"{shop.database}.orders"],
        )
        assert (recovered.state, recovered.system_id) == (ReplicationState.RUNNING, "0-77")
        assert recovered.captured == place.in_epoch(2).position
        assert recovered.event_log != failed.event_log
        assert position_text(recovered.captured) == place.text
        assert shop.prepare(other.address()).replication.captured == recovered.captured
        (orders,) = objects.objects_of(shop.store, "r")
        assert (orders.source_id, orders.needs_backfill) == (f"{shop.database}.orders", None)
