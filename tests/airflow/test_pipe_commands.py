"""`airflow tidemark pipes …`: pipes are looked at, paused, resumed and dropped from the command line, without Spark."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.airflow.command_line import Said, run_airflow
from tests.unit.lake.delta_directories import born
from tidemark.control.store import ControlStore
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker import definitions, stages

pytestmark = pytest.mark.airflow
COPY = "COPY INTO shop.orders FROM @landing PATTERN = '.*[.]csv'"


@pytest.fixture
def store(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlStore:
    """The pipe `shop.orders_pipe` loads files of a stage."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    born(tmp_path / "lake" / "shop" / "orders")
    store = TidemarkHook().open_store()
    stages.create_stage(store, "landing", str(tmp_path / "in"))
    queue = queue_path(str(tmp_path / "lake"), "shop.orders_pipe")
    definitions.create_pipe(store, "shop.orders_pipe", COPY, queue=queue, comment="daily", by="ana")
    return store


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", *arguments)


def rows(*arguments: str) -> list[dict[str, Any]]:
    said = tidemark("pipes", *arguments, "--output", "json")
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def refused(*arguments: str) -> str:
    said = tidemark("pipes", *arguments)
    assert (said.returncode, said.stdout, "Traceback" in said.stderr) == (1, "", False)
    return said.stderr


def test_pipes_are_listed_and_shown_with_the_state_that_their_objects_give_them(
    store: ControlStore, tmp_path: Path
) -> None:
    pipe = definitions.get_pipe(store, "shop.orders_pipe")
    definitions.note_pipe_run(store, pipe.uid, "file a.csv was skipped", None, datetime(2026, 3, 1, tzinfo=UTC))
    (listed,) = rows("list")
    assert (listed["name"], listed["state"], listed["problem"]) == (pipe.name, "RUNNING", "file a.csv was skipped")
    (shown,) = yaml.safe_load(tidemark("pipes", "show", "SHOP.orders_pipe", "--output", "yaml").stdout)
    assert (shown["state"], shown["copy_statement"], shown["comment"]) == ("RUNNING", COPY, "daily")
    assert (shown["files"], shown["uid"]) == (f"file://{tmp_path}/lake/shop/orders_pipe__files", pipe.uid)
    assert (shown["last_run_at"], shown["problem_at"]) == ("2026-03-01T00:00:00+00:00",) * 2
    stages.drop_stage(store, "landing")
    assert rows("show", "shop.orders_pipe")[0]["state"] == "STOPPED_STAGE_DROPPED"
    assert "STOPPED_STAGE_DROPPED" in tidemark("pipes", "show", "shop.orders_pipe").stdout
    assert "These exist: shop.orders_pipe" in refused("show", "shop.orders_pip")


def test_a_pipe_is_paused_and_resumed_and_a_dry_run_changes_nothing(store: ControlStore) -> None:
    states = {"pipe": "shop.orders_pipe", "act": "pause", "before": "RUNNING", "after": "PAUSED"}
    assert rows("pause", "SHOP.orders_pipe", "--dry-run") == [{**states, "done": "False"}]
    assert definitions.get_pipe(store, "shop.orders_pipe").paused_at is None
    assert rows("pause", "shop.orders_pipe") == [{**states, "done": "True"}]
    assert rows("pause", "shop.orders_pipe")[0]["before"] == "PAUSED"
    assert rows("resume", "shop.orders_pipe", "--dry-run")[0]["after"] == "RUNNING"
    assert definitions.get_pipe(store, "shop.orders_pipe").paused_at is not None
    assert rows("resume", "shop.orders_pipe")[0]["before"] == "PAUSED"
    assert rows("resume", "shop.orders_pipe")[0]["before"] == "RUNNING"
    assert "PipeNotFound" in refused("pause", "nobody")


def test_a_pipe_that_was_paused_for_too_long_needs_force(store: ControlStore) -> None:
    store.clock = lambda: datetime.now(UTC) - timedelta(days=15)
    definitions.pause_pipe(store, "shop.orders_pipe", by="ana")
    (listed,) = json.loads(tidemark("objects", "list", "--problems", "--output", "json").stdout)
    assert (listed["kind"], listed["state"], listed["severity"]) == ("pipe", "PAUSED", "warning")
    assert "it is stale" in listed["problem"]
    assert "PipeStale" in refused("resume", "shop.orders_pipe")
    assert "PipeStale" in refused("resume", "shop.orders_pipe", "--dry-run")
    assert rows("resume", "shop.orders_pipe", "--force")[0]["after"] == "RUNNING"


def test_a_drop_is_confirmed_and_keeps_the_table_of_files(store: ControlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows("drop", "shop.orders_pipe", "--dry-run")[0]["done"] == "False"
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert "Nothing was done" in tidemark("pipes", "drop", "shop.orders_pipe").stderr
    assert len(definitions.list_pipes(store)) == 1
    (dropped,) = rows("drop", "shop.orders_pipe", "--yes")
    assert (dropped["done"], dropped["files"].endswith("/shop/orders_pipe__files")) == ("True", True)
    assert definitions.list_pipes(store) == ()
    assert "PipeNotFound" in refused("drop", "shop.orders_pipe", "--yes")
    assert rows("drop", "shop.orders_pipe", "--yes", "--if-exists") == []
    assert rows("list") == []


def test_a_table_shows_texts_in_square_brackets_and_colons_as_they_are(store: ControlStore, tmp_path: Path) -> None:
    odd = "COPY INTO shop.orders FROM @landing PATTERN = '.*[a-z]+[.]csv'"
    definitions.create_pipe(store, "odd", odd, queue=queue_path(str(tmp_path / "lake"), "odd"), comment="", by="ana")
    assert odd in tidemark("pipes", "show", "odd").stdout
    assert tidemark("pipes", "pause", "odd", "--why", "[/ops] [bold] :warning:").returncode == 0
    said = tidemark("objects", "acts").stdout
    assert [text for text in ("[/ops]", "[bold]", ":warning:") if text not in said] == []
    assert tidemark("overview").returncode == 0
