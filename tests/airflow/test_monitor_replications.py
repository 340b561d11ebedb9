"""The monitor's routes of replications: Airflow is asked, the worst comes first, nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app, walked
from tests.airflow.monitored import DAG
from tests.airflow.monitored_replications import REASON, WORST_FIRST, MonitoredReplications, made_in
from tests.control.replication_model import ME, found
from tidemark.errors import SourceUnreachable
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.plugins.monitor.actors import actor
from tidemark.plugins.monitor.connections import open_connection
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS, object_answer
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.objects import request_backfill
from tidemark.replication.worker.status import describe

pytestmark = pytest.mark.airflow

ROUTES = (("/api/v1/replications", {}), ("/api/v1/replication", {"name": "shop"}))


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> MonitoredReplications:
    return made_in(tmp_path_factory.mktemp("replications")).fill()


@pytest.fixture
def ask(app: FastAPI, monitored: MonitoredReplications, use: Callable[[str], None]) -> Caller:
    use(monitored.url)
    return Caller(app)


def objects(answer: Any) -> tuple[str, ...]:
    return tuple(one["name"] for one in answer.json()["objects"])


@pytest.mark.parametrize(("route", "asked"), ROUTES)
def test_only_those_who_may_read_assets_may_see_replications(ask: Caller, route: str, asked: dict[str, str]) -> None:
    assert [ask(route, role=role, **asked).status_code for role in (NOBODY, GUEST)] == [401, 403]


def test_replications_come_with_state_lag_and_alerts(ask: Caller) -> None:
    listed = ask("/api/v1/replications").json()
    assert [one["name"] for one in listed["replications"]] == ["crm", "shop"]
    assert [one["name"] for one in walked(ask, "/api/v1/replications", "replications")] == ["crm", "shop"]
    assert [one["name"] for one in ask("/api/v1/replications", offset=1).json()["replications"]] == ["shop"]
    crm, shop = listed["replications"]
    assert (crm["state"], crm["objects"], crm["behind"]) == ("paused", 0, 0)
    assert (shop["state"], shop["source"], shop["objects"], shop["behind"]) == ("running", "shop_database", 7, 2)
    assert shop["backfills"] == {"active": 1, "completed": 3, "failed": 1, "pending": 1, "unsupported": 1}
    assert 240 <= shop["lag_seconds"] < 3600
    assert shop["lag_bytes"] == 48_200_000
    assert shop["captured_at"].endswith(("Z", "+00:00"))
    assert shop["alert_count"] == len(shop["alerts"]) == 3
    assert f"shop.stock is to be backfilled: {REASON}" in shop["alerts"]


def test_the_objects_of_a_replication_come_worst_first(ask: Caller) -> None:
    answer = ask("/api/v1/replication", name="SHOP")
    assert objects(answer) == WORST_FIRST
    found = {one["name"]: one for one in answer.json()["objects"]}
    assert found["shop.payments"]["state"] == "failed"
    assert "it went away" in found["shop.payments"]["problem"]
    assert (found["shop.stock"]["needs_backfill"], found["shop.stock"]["problem"]) == (REASON, None)
    assert "row security" in found["shop.reviews"]["problem"]
    assert (found["shop.items"]["behind"], found["shop.orders"]["behind"]) == (True, False)
    assert found["shop.orders"]["target"] == "lake.shop_orders"


def test_an_active_backfill_has_rows_and_percent(ask: Caller) -> None:
    found = {one["name"]: one for one in ask("/api/v1/replication", name="shop").json()["objects"]}
    progress = found["shop.customers"]["progress"]
    assert found["shop.customers"]["state"] == "active"
    assert (progress["done"], progress["expected"], progress["percent"]) == (51_600, 120_000, 43.0)
    assert found["shop.vouchers"]["progress"] is None


def test_without_statistics_of_the_source_a_backfill_has_rows_alone(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = made_in(tmp_path)
    made.shop.start("shop.a")
    made.active("shop.a", done=7, expected=0)
    use(made.url)
    (one,) = Caller(app)("/api/v1/replication", name="shop").json()["objects"]
    assert (one["progress"]["done"], one["progress"]["expected"], one["progress"]["percent"]) == (7, None, None)


def test_an_object_that_needs_a_requested_backfill_is_not_among_the_worst_any_more(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = made_in(tmp_path).fill()
    request_backfill(made.store, "shop", ["shop.stock"], by=ME)
    use(made.url)
    found = objects(Caller(app)("/api/v1/replication", name="shop"))
    assert found.index("shop.customers") < found.index("shop.stock") < found.index("shop.items")


def test_objects_are_searched_by_name_and_target_and_turned(ask: Caller) -> None:
    assert objects(ask("/api/v1/replication", name="shop", search="ITEM")) == ("shop.items",)
    assert objects(ask("/api/v1/replication", name="shop", search="lake.shop_or")) == ("shop.orders",)
    assert objects(ask("/api/v1/replication", name="shop", search="%")) == ()
    turned = ask("/api/v1/replication", name="shop", limit=2, offset=2)
    assert (objects(turned), turned.json()["total"]) == (WORST_FIRST[2:4], 7)
    assert objects(ask("/api/v1/replication", name="shop", offset=7)) == ()
    assert [one["name"] for one in walked(ask, "/api/v1/replication", "objects", name="shop")] == list(WORST_FIRST)


def test_the_failed_one_of_1000_objects_is_on_the_first_page(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(made_in(tmp_path).many(1_000).url)
    ask = Caller(app)
    first = ask("/api/v1/replication", name="shop")
    assert objects(first)[:2] == ("shop.t00999", "shop.t00000")
    assert (len(first.json()["objects"]), first.json()["total"]) == (50, 1_000)
    assert objects(ask("/api/v1/replication", name="shop", search="t0050", limit=200)) == tuple(
        f"shop.t0050{digit}" for digit in range(10)
    )
    assert len(first.json()["moves"]) == 50
    assert first.json()["older_moves"] is True


def test_of_many_alerts_the_first_20_are_told_and_all_are_counted(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = made_in(tmp_path)
    made.shop.start()
    made.shop.register(*(found(f"shop.t{number:02}", unsupported="it is too wide") for number in range(30)))
    use(made.url)
    (one,) = Caller(app)("/api/v1/replications").json()["replications"]
    assert (len(one["alerts"]), one["alert_count"]) == (20, 31)
    assert "replicates nothing" in one["alerts"][0]
    assert "too wide" in one["alerts"][1]


def test_moves_come_newest_first_with_who_made_them(ask: Caller) -> None:
    found = ask("/api/v1/replication", name="shop").json()["moves"]
    assert (found[-1]["act"], found[-1]["object"]) == ("create", None)
    assert [move["moved_at"] for move in found] == sorted((move["moved_at"] for move in found), reverse=True)
    began = next(move for move in found if move["object"] == "shop.customers" and move["after"] == "active")
    assert (began["before"], began["who"]["dag_id"], began["who"]["task_id"]) == ("pending", DAG, "backfill")
    assert next(move for move in found if move["act"] == "capture")["position"] == "0/12"
    paused = ask("/api/v1/replication", name="crm").json()["moves"][0]
    assert (paused["act"], paused["who"]["said"], paused["why"]) == ("pause at once", "ana", "the CRM moves")


def test_names_of_dags_that_the_caller_may_not_read_are_not_shown(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    for route, asked in ROUTES:
        answer = ask(route, **asked)
        assert answer.status_code == 200
        assert DAG not in answer.text
        assert "scheduled__" not in answer.text


def test_errors_are_shown_to_those_who_may_read_the_dags_of_the_runs_that_met_them(
    ask: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    met = ("it went away", REASON, "row security")
    seen = [ask(route, **asked).text for route, asked in ROUTES]
    assert all(words in text for words in met for text in seen)
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    hidden = [ask(route, **asked) for route, asked in ROUTES]
    assert not any(words in answer.text for words in met for answer in hidden)
    shop = hidden[0].json()["replications"][1]
    assert (shop["alert_count"], shop["alerts"][0]) == (3, f"shop.payments: {FOR_OTHERS}")
    objects = {one["name"]: one for one in hidden[1].json()["objects"]}
    assert (objects["shop.stock"]["needs_backfill"], objects["shop.payments"]["problem"]) == (FOR_OTHERS, FOR_OTHERS)
    assert objects["shop.orders"]["problem"] is None


def test_errors_are_shown_to_nobody_where_no_run_is_known_that_may_have_met_them(tmp_path: Path) -> None:
    shop = describe(made_in(tmp_path).fill().store, "shop")
    of = {one.object.name.text: one for one in shop.objects}
    payments, customers = of["shop.payments"].object.uid, of["shop.customers"].object.uid
    assert actor(shop.open_runs[customers], {DAG}).dag_id == DAG  # its backfill is under way
    run, another = shop.open_runs[customers], shop.open_runs[customers].replace(DAG, "another")
    for last_runs, open_runs, readable, shown in (
        ({}, {}, {DAG}, False),
        ({}, {payments: run}, {DAG}, True),
        ({}, {payments: run}, set[str](), False),
        ({payments: another}, {payments: run}, {"another"}, False),
        ({payments: another}, {payments: run}, {"another", DAG}, True),
        ({"else": another}, {}, {"another"}, True),
        ({"else": another}, {"other": run}, {DAG}, False),
    ):
        status = replace(shop, last_runs=dict[str | None, str](last_runs), open_runs=open_runs)
        assert (object_answer(of["shop.payments"], status, readable).problem != FOR_OTHERS) is shown


def test_secrets_are_taken_out_of_errors_before_they_are_stored(tmp_path: Path) -> None:
    made = made_in(tmp_path)
    made.store.hide = lambda text: re.sub(f"it went away|row security|{re.escape(REASON)}", "***", text)
    made.fill()
    lifecycle.settle(made.store, "shop", error=SourceUnreachable(source="shop", problem="it went away"), by=ME)
    status = describe(made.store, "shop")
    said = [str(status.replication.error), *status.alerts, *(str(one.object.problem) for one in status.objects)]
    assert sum("***" in text for text in said) >= 6
    assert not any(secret in text for text in said for secret in ("it went away", "row security", REASON))


def test_the_stores_of_a_task_and_of_the_page_hide_what_airflow_masks(hook: TidemarkHook) -> None:
    from airflow.sdk.log import mask_secret

    mask_secret("hunter2-of-the-shop")
    hook.open_store().migrate()
    of_the_page = open_connection(hook.conn_id).store
    assert of_the_page is not None
    for store in (hook.open_store(), of_the_page):
        assert store.hide("password=hunter2-of-the-shop failed") == "password=*** failed"


def test_a_replication_or_connection_that_is_not_there_is_404_in_words(ask: Caller) -> None:
    answer = ask("/api/v1/replication", name="nobody")
    assert (answer.status_code, "nobody" in answer.json()["detail"]) == (404, True)
    assert ask("/api/v1/replication", name="shop", connection="aws_default").status_code == 404
    assert ask("/api/v1/replications", connection="aws_default").status_code == 404


def test_a_question_that_cannot_be_is_422(ask: Caller) -> None:
    for wrong in ({}, {"name": "shop", "limit": 0}, {"name": "shop", "limit": 201}, {"name": "shop", "offset": -1}):
        assert ask("/api/v1/replication", **wrong).status_code == 422


def test_a_store_that_no_task_has_made_yet_has_no_replication_and_is_not_made(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    ask = Caller(app)
    listed = ask("/api/v1/replications").json()
    assert (listed["store"], listed["replications"]) == ("absent", [])
    assert ask("/api/v1/replication", name="shop").status_code == 404
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("route", "asked"), ROUTES)
def test_a_store_that_cannot_be_read_is_said_in_words(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path, route: str, asked: dict[str, str]
) -> None:
    (tmp_path / "old.db").touch()
    use(f"sqlite:///{tmp_path}/old.db")
    ask = Caller(another_app())  # it pauses after what comes
    answer = ask(route, **asked)
    assert (answer.status_code, "airflow tidemark db migrate" in answer.json()["detail"]) == (503, True)
    use("postgresql+psycopg://tidemark:secret-word@127.0.0.1:1/nowhere")
    answer = ask(route, **asked)
    assert (answer.status_code, "does not answer" in answer.json()["detail"]) == (503, True)
    assert "secret-word" not in answer.text


def test_the_streams_tell_how_many_replications_are_beside_them(
    ask: Caller, app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    assert ask("/api/v1/streams").json()["replications"] == 2
    use(f"sqlite:///{tmp_path}/none.db")
    assert Caller(app)("/api/v1/streams").json()["replications"] == 0


def test_nothing_in_the_store_changes_by_being_looked_at(ask: Caller, monitored: MonitoredReplications) -> None:
    def content() -> list[str]:
        with monitored.store._engine.connect() as connection:
            return list(connection.connection.driver_connection.iterdump())  # type: ignore[union-attr]

    before = content()
    for route, asked in ROUTES:
        assert ask(route, **asked).status_code == 200
    assert content() == before
