"""The rights that the documentation gives are enough for tasks, and no more than they need.

Consumption, change streams and replications are driven here; `test_least_rights_of_other_subjects.py` has the other
subjects. Tests with `copied_store`, `task_store` or `postgresql_store` have these rights on PostgreSQL, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
import sqlalchemy as sa

import tidemark
from tests.conftest import Documented
from tests.control.change_stream_model import ChangeStreamWorld, segment
from tests.control.replication_model import World as ReplicationWorld
from tests.postgresql import PostgresServer
from tidemark.change_streams.worker.definitions import drop_change_stream, watch
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.retention import expire_before, forget
from tidemark.control.schema import SUBJECTS
from tidemark.control.store import ControlStore
from tidemark.errors import StoreNotMigrated, StoreRefused
from tidemark.streams.store import schema

from .world import World


@pytest.fixture
def as_task(postgresql: PostgresServer, migrated_database: str) -> Iterator[ControlStore]:
    """A migrated store, as a task opens it."""
    database = postgresql.new_database(template=migrated_database)
    ControlStore(postgresql.url(database, user="tidemark_owner")).migrate()
    opened = ControlStore(postgresql.url(database, user="tidemark"))
    yield opened
    opened.close()


def test_tasks_can_do_all_they_must_and_nothing_else(
    postgresql: PostgresServer, documented: Documented, tmp_path: Path
) -> None:
    database = postgresql.new_database(template=documented.empty)
    url = postgresql.url(database, user="tidemark")
    with pytest.raises(StoreNotMigrated):
        ControlStore(url).require_revision()
    with pytest.raises(StoreRefused, match="permission denied for schema public"):
        ControlStore(url).migrate()
    ControlStore(postgresql.url(database, user="tidemark_owner")).migrate()

    world = World(tmp_path, url)
    world.stream()
    world.source.append()
    world.consume("one")
    assert (world.holds(0), world.offset(), len(world.history())) == ({1: 1}, 1, 2)

    forbidden = (sa.delete(schema.streams), sa.text("CREATE TABLE mine (n int)"), sa.text("TRUNCATE tidemark_stream"))
    for statement in forbidden:
        with pytest.raises(StoreRefused, match="permission denied"):
            world.store.write(lambda connection: connection.execute(statement))  # noqa: B023 - runs now


def test_tasks_may_delete_from_those_tables_that_they_delete_from(
    postgresql: PostgresServer, as_task: ControlStore
) -> None:
    asked = sa.text(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " AND has_table_privilege(oid, 'DELETE')"
    )
    may = set(as_task.read(lambda connection: connection.execute(asked).scalars().all()))
    files = [
        file for file in Path(tidemark.__file__).parent.glob("*/store/*.py") if file.name != "history.py"
    ]  # see pruning
    code = "".join(file.read_text() for file in files)
    tables = {name: table for one in SUBJECTS for name, table in vars(import_module(one)).items()}
    assert may == {tables[name].name for name in re.findall(r"(\w+)\s*\.delete\(\)", code)}


def test_a_change_stream_lives_and_ends_with_these_rights(as_task: ControlStore, tmp_path: Path) -> None:
    world = ChangeStreamWorld(as_task, tmp_path / "lake")
    create_group(as_task, "s", "g", start=world.clock.now)
    other = world.new_table("other")
    known = world.stream.tables
    watch(as_task, "s", [*known, other.watched()], False, known=known, restarted=set())
    world.batch(*(segment(one.token, world.clock.now, 5) for one in world.active()))
    world.clock.go(timedelta(days=60))
    expire_before(as_task, "s")
    forget(as_task, "s")
    drop_change_stream(as_task, "s")


def test_a_replication_lives_and_ends_with_these_rights(as_task: ControlStore, tmp_path: Path) -> None:
    world = ReplicationWorld(as_task, tmp_path)
    world.replicated("s.a", "s.b")
    world.source.commit("id of s.a")
    world.capture()
    world.apply("s.a")
    world.expire()
    assert world.wrongs == []
