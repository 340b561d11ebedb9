"""A topic, a table and an API, read by tasks into landing tables: each row once, over several runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake
from tests.kafka_broker import KafkaBroker, kafka_or_skip
from tests.postgresql import PASSWORD, USER, PostgresServer
from tidemark.errors import InvalidArgument
from tidemark.hooks.rows_connection import rows_connection
from tidemark.operators.ingest import IngestRowsOperator

if TYPE_CHECKING:
    from tests.airflow.runs import Outcome

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = "SELECT id, name FROM sold WHERE id > :after ORDER BY id"


@pytest.fixture
def landing(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> Lake:
    """A lake of its own with two landing tables."""
    columns = "id BIGINT NOT NULL, name STRING"
    return Lake.of_its_own(lake.spark, tmp_path, monkeypatch.setenv, {"a.clicks": columns, "a.sold": columns})


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with kafka_or_skip() as running:
        yield running


def clicks(*ids: int) -> list[bytes]:
    return [json.dumps({"id": number, "name": "click"}, indent=1).encode() for number in ids]


def the_dag(*tasks: tuple[str, str, dict[str, Any]]) -> DAG:
    """A task for each (source, table, options); its channel has a partition's name."""
    with DAG("land", start_date=NEW_YEAR, schedule=None, catchup=False) as dag:
        for number, (source, table, options) in enumerate(tasks):
            IngestRowsOperator(
                task_id=f"{source}_{number}",
                source=source,
                source_options=options,
                table=table,
                channel=f"{source}_{options.get('partition', 0)}",
                on_error="continue",
                channel_options={"quarantine": "a.bad", "max_client_lag": "1 second"},
            )
    return dag


def test_each_row_of_a_topic_and_of_a_table_is_landed_once_over_several_runs(
    landing: Lake,
    broker: KafkaBroker,
    source_server: PostgresServer,
    run_dag: Callable[..., Outcome],
    users_spark: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = source_server.new_database()
    source_server.sql("CREATE TABLE sold (id BIGINT PRIMARY KEY, name TEXT)", database)
    source_server.sql("INSERT INTO sold SELECT n, 'it''s ' || n FROM generate_series(1, 25) n", database)
    broker.create("clicks", partitions=2)
    broker.send("clicks", [*clicks(1, 2), b"{half", None], 0)
    broker.send("clicks", clicks(3), 1)
    where = {"host": "127.0.0.1", "port": source_server.port, "login": USER, "password": PASSWORD, "schema": database}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "postgres", **where}))
    extra = {"bootstrap.servers": broker.address.brokers}
    monkeypatch.setenv("AIRFLOW_CONN_EVENTS", json.dumps({"conn_type": "kafka", "extra": extra}))
    topic = {"conn_id": "events", "topic": "clicks"}
    dag = the_dag(
        ("kafka", "a.clicks", {**topic, "partition": 0}),
        ("kafka", "a.clicks", {**topic, "partition": 1}),
        ("sql", "a.sold", {"conn_id": "shop", "query": QUERY, "key": "id", "initial": 0, "rows_per_batch": 10}),
    )
    first = run_dag(dag, at=NEW_YEAR)
    assert first.state == "success"
    topic_0, sold = first.returned("kafka_0"), first.returned("sql_2")
    assert (topic_0["rows"], topic_0["errors"], topic_0["to_token"].partition("@")[0]) == (2, 1, "3")
    assert topic_0["last_error"].startswith("offset 2 of clicks: it is not a JSON object")
    assert (sold["rows"], sold["from_token"], sold["to_token"]) == (25, None, "25")
    broker.send("clicks", clicks(4, 5), 1)
    source_server.sql("INSERT INTO sold VALUES (26, NULL)", database)
    second = run_dag(dag, at=datetime(2026, 1, 2, tzinfo=UTC))
    assert [second.returned(task)["rows"] for task in ("kafka_0", "kafka_1", "sql_2")] == [0, 2, 1]
    assert [row[0] for row in landing.rows("a.clicks")] == [1, 2, 3, 4, 5]
    assert [row[0] for row in landing.rows("a.sold")] == list(range(1, 27))
    ((*_, text),) = landing.rows("a.bad")
    assert text == "{half"
    assert not [
        file for file in landing.root.parent.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()
    ]


@pytest.mark.parametrize(
    ("source", "connection", "problem"),
    [
        ("kafka", {"conn_type": "postgres"}, "give one of type kafka"),
        ("http", {"conn_type": "kafka"}, "give one of type http"),
        ("sql", {"conn_type": "http", "host": "x"}, "leads to no database"),
    ],
)
def test_a_connection_that_does_not_fit_its_source_is_refused(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch, source: str, connection: dict[str, str], problem: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(connection))
    with pytest.raises(InvalidArgument, match=problem):
        rows_connection("other", source)


def test_headers_of_an_api_are_the_extras_of_its_connection(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"X-Key": "k", "timeout": "5", "headers": {"Accept": "application/json"}}
    connection = {"conn_type": "http", "host": "api.example.org", "password": PASSWORD, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_API", json.dumps(connection))
    found = rows_connection("api", "http")
    assert (found.host, dict(found.extra)) == ("api.example.org", {"X-Key": "k", "Accept": "application/json"})
    assert PASSWORD not in repr(found)
    function = rows_connection("api", "module:function")
    assert function.extra == extra
