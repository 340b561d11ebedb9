"""`airflow tidemark replications …`: how a replication stands, what went wrong, and what a source has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.airflow.command_line import Said, run_airflow
from tests.airflow.replicated_shop import CONN_ID, ReplicatedShop
from tests.control.replication_model import ME, Ends, World
from tidemark.errors import SlotLost, SourceUnreachable
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.replication.model.replication import ObjectState
from tidemark.replication.worker import lifecycle

pytestmark = pytest.mark.airflow


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", "replications", *arguments)


@pytest.fixture
def world(airflow_home: Path, hook: TidemarkHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """`orders` has its copy, `items` waits for one."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    world = World(hook.open_store(), tmp_path)
    world.start("s.orders", "s.items")
    world.capture()
    world.backfill("s.orders")
    return world


def test_the_command_line_lists_and_shows_replications(world: World) -> None:
    (listed,) = json.loads(tidemark("list", "--output", "json").stdout)
    assert (listed["name"], listed["state"], listed["source"]) == ("r", world.replication.state.value, "pg")
    assert (listed["objects"], listed["alerts"]) == ("2", "0")

    (shown,) = yaml.safe_load(tidemark("show", "R", "--output", "yaml").stdout)
    assert shown["slot"] == world.replication.slot
    backfills = {one["object"]: one["backfill"] for one in shown["objects"]}
    assert backfills == {"s.orders": ObjectState.COMPLETED.value, "s.items": world.object("s.items").state.value}
    acts = [(move["object"], move["act"]) for move in shown["history"]]
    assert acts[-1] == (None, "create")
    assert "s.orders" in {name for name, _ in acts}
    assert "s.items" in tidemark("show", "r").stdout


def test_the_command_line_names_a_replication_that_is_not_there(airflow_home: Path) -> None:
    failed = tidemark("show", "never was")
    assert failed.returncode == 1
    assert "ReplicationNotFound" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_command_line_lists_the_errors_of_a_replication(world: World) -> None:
    assert json.loads(tidemark("errors", "r", "--output", "json").stdout) == []
    for _ in range(2):
        with pytest.raises(SourceUnreachable):
            world.backfill("s.items", Ends.ERROR)
    lifecycle.settle(world.store, "r", error=SlotLost(slot="s", problem="is gone", position="0/1"), by=ME)
    listed = json.loads(tidemark("errors", "R", "--output", "json").stdout)
    assert {(one["object"], one["reason"], one["count"]) for one in listed} == {
        ("s.items", "SourceUnreachable", "2"),
        (None, "SlotLost", "1"),
    }
    assert all(one["first_seen"] <= one["last_seen"] for one in listed)
    (one,) = json.loads(tidemark("errors", "r", "--object", "s.items", "--output", "json").stdout)
    assert ("it went away" in one["message"], one["run"]) == (True, ME.run)
    assert len(json.loads(tidemark("errors", "r", "--limit", "1", "--output", "json").stdout)) == 1
    failed = tidemark("errors", "r", "--object", "s.nothing")
    assert (failed.returncode, "ObjectNotFound" in failed.stderr) == (1, True)


def test_the_command_line_discovers_a_source_and_makes_nothing(shop: ReplicatedShop) -> None:
    with shop.connected() as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE SCHEMA more; CREATE TABLE more.log (line text); CREATE TABLE more.a (id int PRIMARY KEY)"
        )
        connection.commit()
    (found,) = json.loads(tidemark("discover", CONN_ID, "--schema", "more", "--output", "json").stdout)
    assert (found["database"], found["ready"], found["tables_found"]) == (shop.database, "True", "2")
    tables = {one["table"]: one for one in found["tables"]}
    assert (tables["more.a"]["fits"], tables["more.log"]["fits"]) == ("True", "False")
    assert "REPLICA IDENTITY FULL" in tables["more.log"]["problems"][0]
    assert [(one["column"], one["native"], one["delta"]) for one in tables["more.a"]["columns"]] == [
        ("id", "integer", "INT")
    ]
    shown = tidemark("discover", CONN_ID, "--schema", "more", "--columns").stdout
    assert ("more.log" in shown, "integer" in shown) == (True, True)
    assert [one["table"] for one in found["tables"]] == ["more.log", "more.a"]  # the one that does not fit comes first
    part = tidemark("discover", CONN_ID, "--schema", "more", "--search", "MORE", "--limit", "1", "--output", "json")
    assert [one["table"] for one in json.loads(part.stdout)[0]["tables"]] == ["more.log"]
    rest = tidemark("discover", CONN_ID, "--schema", "more", "--cursor", part.stderr.split()[-1], "--output", "json")
    assert ([one["table"] for one in json.loads(rest.stdout)[0]["tables"]], rest.stderr) == (["more.a"], "")
    made = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    assert shop.server.sql(f"{made} UNION SELECT pubname FROM pg_publication", shop.database) == []


def test_the_command_line_names_a_source_that_is_not_there(airflow_home: Path) -> None:
    failed = tidemark("discover", "never_was")
    assert (failed.returncode, "never_was" in failed.stderr, "Traceback" in failed.stderr) == (1, True, False)
