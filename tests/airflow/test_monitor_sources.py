"""The monitor's route of source databases: who may ask, what is answered, and that nothing is made."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.monitor_app import GUEST, NOBODY, VIEWER, Caller, another_app, walked
from tests.airflow.replicated_shop import CONN_ID, ReplicatedShop
from tests.postgresql import PASSWORD
from tidemark.plugins.monitor import source_reading

pytestmark = pytest.mark.airflow

OP = "op"  # the least role of Airflow that may read connections
ROUTE = f"/api/v1/source/{CONN_ID}"


@pytest.fixture
def ask(app: FastAPI, shop: ReplicatedShop) -> Caller:
    return Caller(app)


def test_a_source_is_shown_to_those_who_may_read_assets_and_its_connection(ask: Caller) -> None:
    answers = [ask(ROUTE, role=role).status_code for role in (NOBODY, GUEST, VIEWER, OP)]
    assert answers == [401, 403, 403, 200]


def test_tables_come_with_columns_and_what_keeps_them_out_first(ask: Caller, shop: ReplicatedShop) -> None:
    with shop.connected() as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE SCHEMA more; CREATE TABLE more.log (line text); CREATE TABLE more.a (id int PRIMARY KEY)"
        )
        connection.commit()
    found = ask(ROUTE, role=OP).json()
    assert (found["connection"], found["kind"], found["database"]) == (CONN_ID, "postgresql", shop.database)
    assert shop.database in found["databases"]
    assert "more" in found["schemas"]
    assert (found["ready"], found["problems"], found["found"]) == (True, [], found["fitting"] + 1)
    log, first = found["tables"][:2]
    assert (log["name"], log["fits"], first["fits"]) == ("more.log", False, True)
    assert "REPLICA IDENTITY FULL" in log["problems"][0]
    (one,) = ask(ROUTE, role=OP, search="MORE.A").json()["tables"]
    assert one["columns"] == [
        {"name": "id", "native": "integer", "unified": "integer", "delta": "INT", "key": True, "nullable": False}
    ]
    page = ask(ROUTE, role=OP, search="more", limit=1, offset=1).json()
    assert (page["total"], [table["name"] for table in page["tables"]]) == (2, ["more.a"])
    assert [one["name"] for one in walked(ask, ROUTE, "tables", role=OP)] == [one["name"] for one in found["tables"]]


def test_a_look_makes_nothing_in_the_source(ask: Caller, shop: ReplicatedShop) -> None:
    assert ask(ROUTE, role=OP).status_code == 200
    made = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    assert shop.server.sql(f"{made} UNION SELECT pubname FROM pg_publication", shop.database) == []


def test_a_missing_connection_and_a_source_that_is_away_are_told_in_words(
    ask: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask("/api/v1/source/never_was", role=OP).status_code == 404
    away: dict[str, Any] = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "x", "login": "y"}
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", json.dumps({**away, "password": PASSWORD}))
    answer = ask("/api/v1/source/away", role=OP)
    assert (answer.status_code, "SourceUnreachable" in answer.json()["detail"]) == (503, True)
    assert PASSWORD not in answer.text
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({**away, "conn_type": "sqlite"}))
    answer = ask("/api/v1/source/other", role=OP)
    assert (answer.status_code, "type" in answer.json()["detail"]) == (503, True)


def test_a_source_that_hangs_is_waited_for_a_bounded_time(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_reading, "PATIENCE", 0.0)
    monkeypatch.setattr(source_reading.SourceReader.__init__, "__kwdefaults__", {"patience": 0.001})
    answer = Caller(another_app())(ROUTE, role=OP)
    assert (answer.status_code, "has not answered" in answer.json()["detail"]) == (503, True)
    time.sleep(0.5)  # its thread ends before the server does


def test_a_question_that_cannot_be_is_422(ask: Caller) -> None:
    for wrong in ({"limit": 0}, {"limit": 201}, {"offset": -1}):
        assert ask(ROUTE, role=OP, **wrong).status_code == 422
