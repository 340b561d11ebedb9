"""The monitor's route of all objects: Airflow is asked, the worst comes first, problems are shown to those who may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app, walked
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.monitored_replications import MonitoredReplications
from tests.until import wait_until
from tidemark.control.schema import objects
from tidemark.lake.storage import Storage
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS

pytestmark = pytest.mark.airflow

WORST_FIRST = [
    "replicated_table shop/shop.payments",
    "stream clicks",
    "stream returns",  # as a look finds, like the next and the customers
    "stream stock",
    "replicated_table shop/shop.reviews",
    "replicated_table shop/shop.stock",
    "stream customers",
    "replicated_table shop/shop.customers",
    "replicated_table shop/shop.vouchers",
    "replication crm",
    "replicated_table shop/shop.items",
    "replicated_table shop/shop.orders",
    "replication shop",
    "stream order_changes",
    "stream payments",
]


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    """Streams and replications in one store."""
    root = tmp_path_factory.mktemp("objects")
    made = Monitored(root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    made.fill()
    MonitoredReplications(root / "replicated", made.url).fill()
    return made


@pytest.fixture
def ask(app: FastAPI, monitored: Monitored, use: Callable[[str], None]) -> Caller:
    use(monitored.url)
    return Caller(app)


def named(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [f"{one['kind']} {one['name']}" for one in answer.json()["objects"]]


def test_only_those_who_may_read_assets_may_see_objects(ask: Caller) -> None:
    assert [ask("/api/v1/objects", role=role).status_code for role in (NOBODY, GUEST)] == [401, 403]


def test_objects_of_every_kind_come_worst_first(ask: Caller) -> None:
    wait_until(lambda: named(ask("/api/v1/objects")) == WORST_FIRST)
    found = ask("/api/v1/objects").json()
    assert (found["total"], found["kinds"]) == (15, {"replicated_table": 7, "replication": 2, "stream": 6})
    of = {f"{one['kind']} {one['name']}": one for one in found["objects"]}
    payments = of["replicated_table shop/shop.payments"]
    assert (payments["state"], payments["severity"], payments["owner"]) == ("failed", "failed", DAG)
    assert "it went away" in payments["problem"]
    assert payments["since"].endswith(("Z", "+00:00"))
    assert of["replication shop"]["lag_amount"] == 48_200_000
    assert of["replication shop"]["lag_unit"] == "bytes"
    assert of["replicated_table shop/shop.orders"]["lag_seconds"] > 0


def test_streams_come_with_what_their_logs_say(ask: Caller) -> None:
    of = {one["name"]: one for one in ask("/api/v1/objects", kind="stream").json()["objects"]}
    states = {name: (one["state"], one["severity"]) for name, one in of.items()}
    assert states == {
        "clicks": ("failing", "failed"),
        "stock": ("stale", "failed"),
        "customers": ("nearly_stale", "warning"),
        "returns": ("unreadable", "failed"),
        "order_changes": ("behind", "ok"),
        "payments": ("up_to_date", "ok"),
    }
    assert "a column has another type" in of["stock"]["problem"]
    assert "recreate the stream" in of["stock"]["problem"]
    assert "No table exists" in of["returns"]["problem"]
    assert "Delta keeps what the stream needs until" in of["customers"]["problem"]
    assert (of["order_changes"]["lag_amount"], of["order_changes"]["lag_unit"]) == (5, "versions")
    assert 2 * 3600 <= of["order_changes"]["lag_seconds"] < 2 * 3600 + 600
    assert (of["payments"]["lag_amount"], of["payments"]["lag_seconds"]) == (0, 0)
    assert of["order_changes"]["since"] is None
    assert of["clicks"]["since"] is not None


def test_a_lake_that_has_not_answered_leaves_what_the_store_knows(
    monitored: Monitored, use: Callable[[str], None], app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, names = threading.Event(), Storage.names

    def slow(self: Storage, *place: str) -> Any:
        released.wait(60)
        return names(self, *place)

    monkeypatch.setattr(Storage, "names", slow)
    use(monitored.url)
    of = {one["name"]: one for one in Caller(another_app())("/api/v1/objects", kind="stream", wait=0).json()["objects"]}
    assert (of["stock"]["state"], of["payments"]["state"]) == ("failing", "delivering")
    ask = Caller(another_app())
    first = ask("/api/v1/objects", kind="stream", wait=0).json()
    assert (first["looked_at"], first["not_looked_at"]) == (None, 6)
    released.set()
    wait_until(lambda: ask("/api/v1/objects", kind="stream", wait=0).json()["not_looked_at"] == 0)
    later = ask("/api/v1/objects", kind="stream", wait=0).json()
    assert later["looked_at"] <= later["now"]
    assert {one["name"]: one["state"] for one in later["objects"]}["stock"] == "stale"
    assert ask("/api/v1/objects", kind="replication", wait=0).json()["looked_at"] is None


def test_each_object_leads_to_its_own_view(ask: Caller) -> None:
    of = {f"{one['kind']} {one['name']}": one["view"] for one in ask("/api/v1/objects").json()["objects"]}
    assert of["stream stock"] == {"stream": "stock"}
    assert of["replication crm"] == {"replication": "crm"}
    assert of["replicated_table shop/shop.items"] == {"replication": "shop", "search": "shop.items"}
    for view, route in (
        ("stream stock", "/api/v1/stream"),
        ("replicated_table shop/shop.items", "/api/v1/replication"),
    ):
        wanted = {name: of[view][own] for name, own in (("name", "stream"), ("name", "replication")) if own in of[view]}
        assert ask(route, **wanted).status_code == 200


def test_objects_are_chosen_searched_sorted_and_turned(ask: Caller) -> None:
    assert named(ask("/api/v1/objects", kind="replication")) == ["replication crm", "replication shop"]
    wait_until(lambda: named(ask("/api/v1/objects", problems=True)) == WORST_FIRST[:7])
    assert named(ask("/api/v1/objects", state="failing")) == ["stream clicks", "stream stock"]
    assert named(ask("/api/v1/objects", state="warning")) == WORST_FIRST[4:7]
    assert named(ask("/api/v1/objects", state="stale")) == []  # as documented: only a log tells it
    assert named(ask("/api/v1/objects", search="STOCK")) == ["stream stock", "replicated_table shop/shop.stock"]
    assert named(ask("/api/v1/objects", search="%")) == []
    turned = ask("/api/v1/objects", limit=2, offset=2)
    assert (named(turned), turned.json()["total"]) == (WORST_FIRST[2:4], 15)
    pages = walked(ask, "/api/v1/objects", "objects")
    assert [f"{one['kind']} {one['name']}" for one in pages] == named(ask("/api/v1/objects"))
    assert named(ask("/api/v1/objects", sort="name", descending=True))[0] == "stream stock"


@pytest.mark.parametrize("wish", [{"kind": "table"}, {"sort": "lag"}, {"limit": 201}, {"offset": -1}, {"search": "\0"}])
def test_bad_questions_are_refused(ask: Caller, wish: dict[str, Any]) -> None:
    assert ask("/api/v1/objects", **wish).status_code == 422


def test_problems_are_shown_to_those_who_may_read_the_dags_that_met_them(
    ask: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    of = {one["name"]: one for one in ask("/api/v1/objects", problems=True).json()["objects"]}
    assert (of["clicks"]["problem"], of["clicks"]["owner"]) == (FOR_OTHERS, None)  # a DAG that nobody may read
    assert not [name for name, one in of.items() if name != "clicks" and FOR_OTHERS in one["problem"]]
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    answer = ask("/api/v1/objects")
    assert DAG not in answer.text
    assert "not_for_all" not in answer.text
    hidden = {one["name"]: one["problem"] for one in answer.json()["objects"] if one["problem"] is not None}
    assert set(hidden) == {
        "clicks", "stock", "customers", "returns", "shop/shop.payments", "shop/shop.reviews", "shop/shop.stock",
    }  # fmt: skip
    assert {text for name, text in hidden.items() if name.startswith(("shop/", "clicks"))} == {FOR_OTHERS}
    assert hidden["stock"].startswith(f"{FOR_OTHERS}; ")  # what the log says is shown as in the view of streams
    assert "a column has another type" not in answer.text


def test_a_problem_of_which_no_run_is_known_is_shown_to_nobody(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(1)
    made.store.write(lambda c: c.execute(objects.update().values(severity="failed", problem="it is secret")))
    use(made.url)
    answer = Caller(app)("/api/v1/objects")
    assert "it is secret" not in answer.text
    assert answer.json()["objects"][0]["problem"] == FOR_OTHERS


def test_the_failed_one_of_10000_objects_is_on_the_first_page(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(1)
    like = made.store.read(lambda c: dict(c.execute(sa.select(objects)).mappings().one()))
    names = [f"bulk_{number:05}" for number in range(1, 10_000)]
    more = [{**like, "uid": name, "name": name, "folded_name": name} for name in names]
    more[-1] |= {"severity": "failed", "state": "failing"}
    made.store.write(lambda c: c.execute(objects.insert(), more))
    use(made.url)
    answer = Caller(app)("/api/v1/objects")
    assert named(answer)[:2] == ["stream bulk_09999", "stream bulk_0000"]
    assert (len(answer.json()["objects"]), answer.json()["total"]) == (50, 10_000)


def test_a_store_that_no_task_has_made_yet_has_no_objects_and_is_not_made(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    found = Caller(app)("/api/v1/objects").json()
    assert (found["store"], found["total"], found["kinds"]) == ("absent", 0, {})
    assert not list(tmp_path.iterdir())


def test_nothing_in_the_store_changes_by_being_looked_at(ask: Caller, monitored: Monitored) -> None:
    def content() -> list[str]:
        with monitored.store._engine.connect() as connection:
            return list(connection.connection.driver_connection.iterdump())  # type: ignore[union-attr]

    before = content()
    ask("/api/v1/objects")
    assert content() == before
