"""A real source is looked at before each run: nothing starts with a problem, and one bad table stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.control.replication_model import ME
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import ReplicationInvalid, ReplicationRefused, SourceLocked
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import (
    ObjectState,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
)
from tidemark.replication.planning.positions import position_text
from tidemark.replication.sources.open import Source
from tidemark.replication.sources.postgresql.source import PostgresSource
from tidemark.replication.store import replicated_objects
from tidemark.replication.worker import definitions, lifecycle, objects, status
from tidemark.replication.worker.preparing import Prepared, prepare
from tidemark.replication.worker.recovering import recover_from

CLERK, OWNER = "prepared_clerk", "prepared_owner"


@dataclass
class Shop:
    """A database with `public.orders` and `public.items`, which a user without more rights than it takes replicates."""

    server: PostgresServer
    store: ControlStore
    address: SourceAddress
    root: Path

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.server.sql(text, self.address.database)

    def create(self, *include: str, exclude: tuple[str, ...] = (), **options: tuple[str, ...]) -> Replication:
        return definitions.create_replication(
            self.store,
            name="r",
            kind=SourceKind.POSTGRESQL,
            source_conn_id="pg",
            selection=Selection(include, exclude),
            options=ReplicationOptions("lake", **options),  # type: ignore[arg-type]
            event_log=(self.root / "events").as_uri(),
            by=ME,
        )

    @property
    def source(self) -> Source:
        return PostgresSource(self.address, lock_patience=timedelta(seconds=1))

    def prepare(self) -> Prepared:
        def target(name: Any) -> TableRef:
            return TableRef(f"lake.{name.folded}", (self.root / name.folded).as_uri(), "")

        return prepare(self.store, "r", source=self.source, targets=target, by=ME)

    def recover(self, position: str) -> Replication:
        logs = (self.root / "more").as_uri()
        return recover_from(
            self.store, "r", position=position, source=self.source, event_log=lambda uid: f"{logs}/{uid}", by=ME
        )

    @property
    def replication(self) -> Replication:
        return definitions.get_replication(self.store, "r")

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """As a CREATE INDEX has it."""
        at = self.address
        with psycopg.connect(host=at.host, port=at.port, user=at.user, password="x", dbname=at.database) as other:
            other.execute(f"LOCK {table} IN SHARE MODE")
            yield

    def objects(self) -> dict[str, ReplicatedObject]:
        return {one.name.text: one for one in objects.objects_of(self.store, "r")}

    def work(self) -> tuple[ReplicatedObject, ...]:
        return objects.to_work_at(self.store, "r")

    def published(self) -> list[str]:
        return sorted(str(one[0]) for one in self.sql("SELECT tablename FROM pg_publication_tables"))

    def slots(self) -> int:
        return len(self.sql("SELECT 1 FROM pg_replication_slots WHERE database = current_database()"))


@pytest.fixture
def shop(source_server: PostgresServer, copied_store: ControlStore, tmp_path: Path) -> Iterator[Shop]:
    database = source_server.new_database()
    address = replace(source_server.address(database), user=CLERK, password="x")
    made = Shop(source_server, copied_store, address, tmp_path)
    made.sql(f"CREATE ROLE {CLERK} LOGIN REPLICATION PASSWORD 'x'; CREATE ROLE {OWNER}")
    made.sql(f"GRANT CREATE ON DATABASE {database} TO {CLERK}; GRANT ALL ON SCHEMA public TO {CLERK}, {OWNER}")
    tables = "CREATE TABLE orders (id int PRIMARY KEY, x int); CREATE TABLE items (LIKE orders INCLUDING ALL)"
    made.sql(f"SET ROLE {CLERK}; {tables}")
    yield made
    made.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()")
    source_server.sql(f"DROP DATABASE {database} WITH (FORCE)")
    source_server.sql(f"DROP ROLE {CLERK}; DROP ROLE {OWNER}")


BAD = {
    "of another owner": (
        f"CREATE TABLE bad (id int PRIMARY KEY); ALTER TABLE bad OWNER TO {OWNER}",
        "only its owner may publish it",
    ),
    "that hides rows": (
        f"CREATE TABLE bad (id int PRIMARY KEY); ALTER TABLE bad OWNER TO {CLERK};"
        "ALTER TABLE bad ENABLE ROW LEVEL SECURITY; ALTER TABLE bad FORCE ROW LEVEL SECURITY",
        "BYPASSRLS",
    ),
    "whose columns clash": (
        f'CREATE TABLE bad (id int PRIMARY KEY, "Note" text, note text); ALTER TABLE bad OWNER TO {CLERK}',
        "differ by case only",
    ),
    "whose target is taken": (
        f'CREATE TABLE "Orders" (id int PRIMARY KEY); ALTER TABLE "Orders" OWNER TO {CLERK}',
        "as public.orders is",
    ),
    "whose key is left out": (
        f"CREATE TABLE bad (secret int PRIMARY KEY, x int); ALTER TABLE bad OWNER TO {CLERK}",
        "the key column secret is excluded",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_new_table_that_cannot_be_replicated_stops_no_other(shop: Shop, bad: str) -> None:
    shop.create(exclude=("*.*.secret",))
    shop.prepare()
    assert len(shop.work()) == 2
    statement, why = BAD[bad]
    shop.sql(statement)
    for _ in range(2):
        prepared = shop.prepare()
        assert [one.name.text for one in shop.work()] == ["public.items", "public.orders"]
        (refused,) = (one for one in shop.objects().values() if one.state is ObjectState.UNSUPPORTED)
        assert why in str(refused.problem)
        assert [warning for warning in prepared.warnings if warning.startswith(f"{refused.name.text} is not repl")]
        assert shop.replication.state is ReplicationState.RUNNING
        assert shop.published() == ["items", "orders"]


def test_it_is_taken_up_when_it_is_mended(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    shop.sql(BAD["of another owner"][0])
    shop.prepare()
    shop.sql(f"ALTER TABLE bad OWNER TO {CLERK}")
    shop.prepare()
    assert "public.bad" in [one.name.text for one in shop.work()]
    assert (shop.objects()["public.bad"].state, shop.objects()["public.bad"].problem) == (ObjectState.PENDING, None)
    assert shop.published() == ["bad", "items", "orders"]


def test_a_new_table_that_stays_locked_is_put_off_to_the_next_run(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    tables = "CREATE TABLE busy (id int PRIMARY KEY); CREATE TABLE free (id int PRIMARY KEY)"
    shop.sql(f"SET ROLE {CLERK}; {tables}")
    with shop.locked("busy"):
        prepared = shop.prepare()
    assert [one.name.text for one in shop.work()] == ["public.free", "public.items", "public.orders"]
    assert [one for one in prepared.warnings if one.startswith("public.busy is not replicated yet")]
    assert shop.objects()["public.busy"].state is ObjectState.UNSUPPORTED
    assert (shop.replication.state, shop.published()) == (ReplicationState.RUNNING, ["free", "items", "orders"])
    shop.prepare()
    assert "public.busy" in [one.name.text for one in shop.work()]
    assert (shop.objects()["public.busy"].state, shop.objects()["public.busy"].problem) == (ObjectState.PENDING, None)
    assert shop.published() == ["busy", "free", "items", "orders"]


def test_a_table_that_is_selected_no_more_and_stays_locked_leaves_later(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    definitions.alter_selection(shop.store, "r", Selection(("public.orders",)), by=ME)
    with shop.locked("items"):
        shop.prepare()
        assert [one.name.text for one in shop.work()] == ["public.orders"]
    assert (shop.objects()["public.items"].selected, shop.published()) == (False, ["items", "orders"])
    shop.prepare()
    assert shop.published() == ["orders"]


def test_a_table_that_stays_locked_keeps_a_replication_from_starting(shop: Shop) -> None:
    shop.create()
    with shop.locked("items"), pytest.raises(SourceLocked):
        shop.prepare()
    assert shop.published() == []
    shop.prepare()
    assert len(shop.work()) == 2


def test_a_table_that_was_copied_and_may_be_read_no_more_goes_on(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    begun = objects.stop_backfill(shop.store, "r", ["public.orders"], by=ME)[0]
    shop.sql(f"ALTER TABLE items OWNER TO {OWNER}; ALTER TABLE orders OWNER TO {OWNER}")
    here = shop.replication.captured
    shop.store.write(lambda store: replicated_objects.begin_at(store, begun.uid, here, new_log=False))
    warnings = "\n".join(shop.prepare().warnings)
    assert "public.orders may not be read" in warnings
    assert (shop.objects()["public.orders"].state, shop.objects()["public.items"].state) == (
        ObjectState.STOPPED, ObjectState.UNSUPPORTED,
    )  # fmt: skip
    assert shop.published() == ["orders"]


def test_a_server_without_room_is_a_warning_once_it_runs(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    shop.sql(f"ALTER ROLE {CLERK} NOREPLICATION")
    warnings = "\n".join(shop.prepare().warnings)
    assert "may not read the log" in warnings
    assert shop.replication.state is ReplicationState.RUNNING


def test_one_whose_selection_names_nothing_any_more_says_so(shop: Shop) -> None:
    shop.create("public.orders")
    assert status.describe(shop.store, "r").alerts == ()
    shop.prepare()
    assert status.describe(shop.store, "r").alerts == ()
    definitions.alter_selection(shop.store, "r", Selection(("publik",)), by=ME)
    warnings = shop.prepare().warnings
    assert "The selection names publik, and the source has nothing of that name." in warnings
    (alert,) = status.describe(shop.store, "r").alerts
    assert alert == "r replicates nothing: its selection names no table that can be."


def test_its_own_publication_in_other_hands_stops_it(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    shop.sql(f'ALTER PUBLICATION "{shop.replication.publication}" OWNER TO postgres')
    with pytest.raises(ReplicationInvalid, match="ALTER PUBLICATION"):
        shop.prepare()
    assert shop.replication.state is ReplicationState.FAILED


def test_now_throws_no_slot_away_that_can_be_read_on(shop: Shop) -> None:
    shop.create()
    shop.prepare()
    shop.sql(BAD["of another owner"][0])
    lifecycle.failed(shop.store, "r", error="the network went away", by=ME)
    began = shop.source.slot_position(shop.replication)
    with pytest.raises(ReplicationRefused, match="its last run failed, and the next one tries again"):
        shop.recover("now")
    assert shop.source.slot_position(shop.replication) == began
    here = shop.source.current_position()
    for _ in range(2):
        assert shop.recover(position_text(here)).captured == here
    with pytest.raises(ReplicationRefused, match="only one that failed is recovered"):
        shop.recover("now")
    lifecycle.failed_permanently(shop.store, "r", error="it is lost", by=ME)
    with pytest.raises(
        ReplicationRefused, match=r"gives nothing before \w+/\w+, so 0/1 can no longer be .* from 'now'"
    ):
        shop.recover("0/1")
    assert shop.recover("now").captured > here
    assert shop.published() == ["items", "orders"]


@pytest.mark.parametrize("bad", ["of another owner", "that hides rows", "whose columns clash"])
def test_at_its_first_start_everything_is_refused_and_nothing_made(shop: Shop, bad: str) -> None:
    shop.create()
    shop.sql(BAD[bad][0])
    with pytest.raises(ReplicationInvalid, match=BAD[bad][1]):
        shop.prepare()
    assert (shop.replication.state, shop.published(), shop.slots()) == (ReplicationState.NOT_STARTED, [], 0)


@pytest.mark.parametrize("include", ["public.ordrs", "publik.*", "public.keyless"])
def test_one_that_selects_nothing_does_not_start(shop: Shop, include: str) -> None:
    shop.sql(f"CREATE TABLE keyless (x int); ALTER TABLE keyless OWNER TO {CLERK}")
    shop.create(include)
    with pytest.raises(ReplicationInvalid, match="nothing that can be replicated") as refused:
        shop.prepare()
    assert include in str(refused.value)
    assert (shop.replication.state, shop.published(), shop.slots()) == (ReplicationState.NOT_STARTED, [], 0)


@pytest.mark.parametrize("argument", ["mask_columns", "hash_columns", "exclude"])
def test_one_with_a_pattern_that_hides_no_column_does_not_start(shop: Shop, argument: str) -> None:
    patterns = ("public.orders.xx", "*.*.nothing")
    shop.create(**{argument: patterns})  # type: ignore[arg-type]
    told = f"{argument} names public.orders.xx, which matches no column .* Did you mean public.orders.x"
    with pytest.raises(ReplicationInvalid, match=told) as refused:
        shop.prepare()
    assert "*.*.nothing" not in str(refused.value)
    assert (shop.replication.state, shop.published(), shop.slots()) == (ReplicationState.NOT_STARTED, [], 0)


def test_once_it_runs_a_pattern_that_hides_nothing_is_a_warning_and_an_alert(shop: Shop) -> None:
    shop.create("public.orders", exclude=("public.secrets", "*.*.nothing"))
    warnings = shop.prepare().warnings
    assert "The selection excludes public.secrets, and the source has nothing of that name." in warnings
    assert [one for one in warnings if one.startswith("exclude names *.*.nothing, which matches no column")]
    hidden = ReplicationOptions("lake", mask_columns=("public.orders.xx",))
    definitions.alter_options(shop.store, "r", hidden, by=ME)
    told = "mask_columns names public.orders.xx, which matches no column of the source and hides nothing."
    assert [one for one in shop.prepare().warnings if one.startswith(told)]
    (alert,) = status.describe(shop.store, "r").alerts
    assert alert.startswith(f"public.orders: {told}")
    definitions.alter_options(shop.store, "r", replace(hidden, mask_columns=("public.orders.x",)), by=ME)
    shop.prepare()
    shop.sql("ALTER TABLE orders RENAME x TO y")
    assert [one for one in shop.prepare().warnings if "mask_columns" in one] == []  # the renamed column stays hidden
