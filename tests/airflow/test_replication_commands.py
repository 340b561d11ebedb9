"""`airflow tidemark replications …`: how a replication stands, without a look at its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.airflow.command_line import Said, run_airflow
from tests.control.replication_model import World
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.replication.model.replication import ObjectState

pytestmark = pytest.mark.airflow


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", "replications", *arguments)


@pytest.fixture
def world(airflow_home: Path, hook: TidemarkHook, tmp_path: Path) -> World:
    """`orders` has its copy, `items` waits for one."""
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
