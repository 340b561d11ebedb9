"""Acts with fields on the page's routes: the offers to an object in any state, and answers to invalid fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import GUEST, NOBODY, VIEWER
from tests.airflow.needing import Needing
from tests.airflow.test_monitor_acts import Desk
from tidemark.control.object_list import find
from tidemark.materialized.worker.views import get_view
from tidemark.streams.worker.streams import get_stream

pytestmark = pytest.mark.airflow


@pytest.fixture
def world(tmp_path: Path) -> Needing:
    return Needing(tmp_path)


@pytest.fixture
def desk(airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None]) -> Desk:
    use(world.url)
    return Desk(world)


@pytest.fixture
def orders(world: Needing) -> int:
    """A healthy stream that was consumed twice; the start of its second window."""
    made = world.monitored
    made._clock(hours=3)
    made._stream("orders")
    for hours in (2, 1):
        made._clock(hours=hours)
        made._commit("orders", times=2)
        made._consume(f"{hours} hours ago", "orders")
    made._clock(hours=0)
    return get_stream(made.store, "orders").offset.version - 2


def offers(desk: Desk, kind: str, name: str, *, role: str = "user") -> dict[str, Any]:
    store = desk.world.store
    uid = store.read(lambda c: find(c, kind, name, now=store.clock())).uid
    answer = desk.ask(f"/api/v1/objects/{kind}/{uid}/acts", role=role)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def field(offered: dict[str, Any], act: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in offered["acts"] if one["name"] == act)
    (wanted,) = (one for one in found["fields"] if one["name"] == name)
    return dict(wanted)


def test_a_healthy_stream_is_delivered_again_from_a_window_that_is_picked(desk: Desk, orders: int) -> None:
    offered = offers(desk, "stream", "orders")
    assert [one["name"] for one in offered["acts"]] == ["advance", "rebase", "replay", "recreate", "drop"]
    window = field(offered, "replay", "window")
    assert (window["type"], window["required"], window["option"]) == ("choice", True, "--from")
    assert [int(one["value"]) for one in window["choices"]] == [orders, orders - 2]
    assert "taken at" in window["choices"][0]["words"]
    done = desk.act(offered, "replay", values={"window": str(orders)})
    assert done.status_code == 200, done.text
    assert get_stream(desk.world.store, "orders").offset.version == orders
    (told,) = desk.ask("/api/v1/acts").json()["acts"]
    assert told["values"] == {"window": str(orders)}
    (row,) = json.loads(run_airflow("tidemark", "objects", "acts", "--output", "json").stdout)
    assert json.loads(row["values"]) == {"window": str(orders)}


def test_what_is_wrong_with_fields_is_said_by_field_and_nothing_is_done(desk: Desk, orders: int) -> None:
    offered = offers(desk, "stream", "orders")
    refused = desk.act(offered, "replay", values={"window": "99", "more": True})
    assert refused.status_code == 422
    assert refused.json()["fields"] == {"window": "it is not offered now", "more": "the act has no such field"}
    refused = desk.act(offered, "advance", values={"to": "yesterday"})
    assert (refused.status_code, refused.json()["fields"].keys()) == (422, {"to"})
    assert desk.act(offered, "replay", values={"window": 3}).status_code == 422
    assert desk.act(offered, "replay", values="window").status_code == 422
    assert desk.act(offered, "replay", values={"window": "x" * 1001}).status_code == 422
    assert desk.act(offered, "rebase", values={"keys": ["a"] * 1001}).status_code == 422
    assert desk.history() == []


def test_who_may_not_edit_the_dag_is_offered_commands_alone(desk: Desk, orders: int) -> None:
    offered = offers(desk, "stream", "orders", role=VIEWER)
    assert {one["allowed"] for one in offered["acts"]} == {False}
    assert field(offered, "rebase", "keys")["option"] == "--key"
    assert desk.act(offered, "replay", values={"window": str(orders)}, role=VIEWER).status_code == 403
    path = f"/api/v1/objects/stream/{offered['uid']}/acts"
    assert [desk.ask(path, role=role).status_code for role in (NOBODY, GUEST)] == [401, 403]
    assert desk.ask("/api/v1/objects/stream/gone/acts").status_code == 404
    assert desk.ask("/api/v1/objects/table/gone/acts").status_code == 422


def test_a_refresh_that_is_asked_for_starts_no_spark_and_the_command_asks_alike(desk: Desk, world: Needing) -> None:
    world._views()
    offered = offers(desk, "dynamic_table", "late_counts")
    assert "since that takes Spark" in next(one["loses"] for one in offered["acts"] if one["name"] == "refresh")
    assert desk.act(offered, "refresh").status_code == 200
    first = get_view(world.store, "late_counts").asked_at
    assert first is not None
    assert desk.act(offered, "refresh").status_code == 409
    said = run_airflow("tidemark", "views", "refresh", "late_counts", "--by-next-run", "--output", "json")
    assert json.loads(said.stdout)[0]["view"] == "late_counts"
    asked = get_view(world.store, "late_counts").asked_at
    assert asked is not None
    assert asked > first
    refused = run_airflow("tidemark", "views", "refresh", "late_counts", "--by-next-run", "--mode", "full")
    assert (refused.returncode, "the view's own mode" in refused.stderr) == (1, True)


def test_a_table_of_a_replication_is_backfilled_and_its_source_that_is_away_is_said(desk: Desk, world: Needing) -> None:
    from tests.airflow.monitored_replications import MonitoredReplications
    from tidemark.replication.model.replication import Actor
    from tidemark.replication.worker.lifecycle import failed_permanently
    from tidemark.replication.worker.objects import get_object

    MonitoredReplications(world.root / "replicated", world.url).fill()
    assert desk.act(offers(desk, "replicated_table", "shop/shop.stock"), "backfill").status_code == 200
    assert get_object(world.store, "shop", "shop.stock").state.value == "pending"
    failed_permanently(world.store, "shop", error="the slot is gone", by=Actor("test"))
    offered = offers(desk, "replication", "shop")
    assert [one["name"] for one in offered["acts"]] == ["recover", "backfill", "drop"]
    assert desk.act(offered, "recover").json()["fields"] == {"position": "it is required"}
    for act, values in (("recover", {"position": "now"}), ("drop", {})):
        refused = desk.act(offered, act, values=values)
        assert refused.status_code == 409, refused.text
        assert "its connection shop_database does not exist" in refused.json()["detail"]
    assert [one[:2] for one in desk.history()] == [("shop/shop.stock", "backfill")]


def test_commands_do_the_same_acts_on_a_stream(desk: Desk, orders: int) -> None:
    def said(*words: str) -> list[dict[str, str]]:
        done = run_airflow("tidemark", *words, "--output", "json")
        assert done.returncode == 0, done.stderr
        return [{name: str(value) for name, value in row.items()} for row in json.loads(done.stdout)]

    rows = said("objects", "offered", "stream", "orders")
    assert {row["act"]: row["options"] for row in rows}["replay"] == f"--from: {orders}, {orders - 2}"
    again = ("streams", "replay", "orders", "--from", str(orders), "--why", "a test load")
    assert said(*again, "--dry-run")[0]["done"] == "False"
    assert get_stream(desk.world.store, "orders").offset.version == orders + 2
    assert said(*again, "--yes")[0]["after"] == str(orders)
    refused = run_airflow("tidemark", "streams", "rebase", "orders", "--why", "a test")
    assert (refused.returncode, "RebaseRefused" in refused.stderr) == (1, True)
    assert said("streams", "rebase", "orders", "--why", "a test", "--force")[0]["after"] == str(orders + 2)
    assert said("streams", "recreate", "orders", "--at", "1", "--yes")[0]["after"] == "1"
