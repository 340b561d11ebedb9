"""The rights that the documentation gives are enough for tasks, and no more than they need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.postgresql import PASSWORD, PostgresServer
from tidemark.control.schema import streams
from tidemark.control.store import ControlStore
from tidemark.errors import StoreNotMigrated, StoreRefused

from .world import World

PAGE = Path(__file__).parents[2] / "provider/docs/how-to/use-postgresql.md"


@pytest.fixture(scope="module")
def as_documented(postgresql: PostgresServer) -> PostgresServer:
    """Users and database as the page's own statements make them."""
    first, then = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    for database, block in (("postgres", first), ("tidemark", then)):
        for statement in filter(str.strip, block.split(";")):
            postgresql.sql(re.sub(r"'choose \w+'", f"'{PASSWORD}'", statement), database)
    return postgresql


def test_tasks_can_do_all_they_must_and_nothing_else(as_documented: PostgresServer, tmp_path: Path) -> None:
    url = as_documented.url("tidemark", user="tidemark")
    with pytest.raises(StoreNotMigrated):
        ControlStore(url).require_revision()
    with pytest.raises(StoreRefused, match="permission denied for schema public"):
        ControlStore(url).migrate()
    ControlStore(as_documented.url("tidemark", user="tidemark_owner")).migrate()

    world = World(tmp_path, url)
    world.stream()
    world.source.append()
    world.consume("one")
    assert (world.holds(0), world.offset(), len(world.history())) == ({1: 1}, 1, 2)

    for forbidden in (sa.delete(streams), sa.text("CREATE TABLE mine (n int)"), sa.text("TRUNCATE tidemark_stream")):
        with pytest.raises(StoreRefused, match="permission denied"):
            world.store.write(lambda connection: connection.execute(forbidden))  # noqa: B023 - runs now
