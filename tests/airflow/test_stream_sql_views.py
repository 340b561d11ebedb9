"""StreamSQLOperator with statements of views: created and refreshed by jobs, changed without, shown by nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.errors import InvalidArgument, NotYetSupported, SqlCompilationError, StatementRefused
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.worker.views import get_view, list_views, view_history
from tidemark.operators.stream_sql import StreamSQLOperator

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = "SELECT id, name FROM shop.orders WHERE id > 1"


def run(run_dag: RunDag, sql: str, at: datetime = AT) -> Outcome:
    name = "views_" + "".join(letter if letter.isalnum() else "_" for letter in sql[:60])
    with DAG(name, schedule=None, params={"lag": "1 minute"}) as dag:
        StreamSQLOperator(task_id="it", sql=sql)
    return run_dag(dag, at)


def status(outcome: Outcome) -> str:
    (only,) = outcome.returned("it")
    return str(only["status"])


@pytest.fixture
def shop(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two orders, in a table that does not track its rows."""
    mine = Lake.of_its_own(spark, tmp_path, monkeypatch.setenv, {})
    mine.create("shop.orders", "id BIGINT, name STRING")
    mine.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "shop.orders")
    return mine


@pytest.mark.spark
def test_views_are_created_refreshed_suspended_and_dropped_by_statements(
    run_dag: RunDag, shop: Lake, warm_spark: Path, hook: TidemarkHook, said: Callable[[], str]
) -> None:
    create = f"CREATE OR REPLACE DYNAMIC TABLE kept.large TARGET_LAG = '{{{{ params.lag }}}}' AS {QUERY}"
    assert "kept.large successfully created." in status(run(run_dag, create))
    store = hook.open_store()
    made = get_view(store, "kept.large")
    assert (made.target_lag is not None and made.target_lag.at_most, made.fresh_at is not None) == (
        timedelta(minutes=1),
        True,
    )
    assert DeltaLog.open(hook.table_uri("shop.orders")).state().row_tracking
    starts = warm_spark.read_text().count("\n")
    assert "by an earlier attempt of this run" in status(run(run_dag, create))  # cleared
    assert get_view(store, "kept.large").uid == made.uid
    assert warm_spark.read_text().count("\n") == starts

    shop.sql("INSERT INTO {t} VALUES (3, 'three')", "shop.orders")
    assert status(run(run_dag, "ALTER DYNAMIC TABLE kept.large SUSPEND")) == "Statement executed successfully."
    refresh = "ALTER DYNAMIC TABLE kept.large REFRESH"
    assert run(run_dag, refresh).task("it") == "failed"
    assert "kept.large is suspended" in said()
    run(run_dag, "ALTER DYNAMIC TABLE kept.large RESUME")
    assert status(run(run_dag, refresh)).startswith("kept.large refreshed (")
    assert [(row[0], row[1]) for row in shop.rows("kept.large")] == [(2, "two"), (3, "three")]
    before = len(view_history(store, "kept.large"))
    assert "refreshed" in status(run(run_dag, refresh))  # cleared: it says what its run did
    assert len(view_history(store, "kept.large")) == before

    run(run_dag, "ALTER DYNAMIC TABLE kept.large SET TARGET_LAG = DOWNSTREAM")
    assert get_view(store, "kept.large").target_lag.at_most is None  # type: ignore[union-attr]
    for word in ("successfully dropped", "already dropped"):
        assert word in status(run(run_dag, "DROP DYNAMIC TABLE kept.large"))
    assert list_views(store) == ()


@pytest.mark.spark
def test_a_materialized_view_is_created_by_a_statement_with_the_errors_of_its_operator(
    run_dag: RunDag, shop: Lake, warm_spark: Path, hook: TidemarkHook, said: Callable[[], str]
) -> None:
    create = "CREATE MATERIALIZED VIEW kept.sums COMMENT = 'it' AS SELECT name, COUNT(*) AS n FROM shop.orders"
    assert run(run_dag, f"{create} WHERE name > current_date() GROUP BY name").task("it") == "failed"
    assert "the run-time value 'current_date'" in said()
    assert "successfully created" in status(run(run_dag, f"{create} GROUP BY name"))
    assert get_view(hook.open_store(), "kept.sums").shape.shape == "sums"


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SHOW DYNAMIC TABLES", StatementRefused, "airflow tidemark views list"),
        ("DESCRIBE MATERIALIZED VIEW v", StatementRefused, "airflow tidemark views list"),
        ("CREATE SECURE MATERIALIZED VIEW v AS SELECT 1", NotYetSupported, "SECURE"),
        ("CREATE DYNAMIC TABLE t AS SELECT id FROM a.b", SqlCompilationError, "needs TARGET_LAG"),
        ("CREATE MATERIALIZED VIEW v AS SELECT FROM WHERE", StatementRefused, "cannot be parsed"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1; DROP MATERIALIZED VIEW v", StatementRefused, "one statement"),
        ("CREATE MATERIALIZED VIEW v AS WITH q AS (SELECT 1)", (StatementRefused, InvalidArgument), "sql|parsed|query"),
        ("ALTER DYNAMIC TABLE t RENAME TO u", NotYetSupported, "RENAME"),
        ("ALTER MATERIALIZED VIEW v SET TARGET_LAG = '1 minute'", SqlCompilationError, "TARGET_LAG"),
        ("UNDROP DYNAMIC TABLE t", SqlCompilationError, "cannot be brought back"),
    ],
)
def test_a_statement_that_no_task_can_run_is_refused_when_the_file_is_parsed(
    sql: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        StreamSQLOperator(task_id="it", sql=sql)
    StreamSQLOperator(task_id="it", sql=sql + "{{ '' }}")  # known when the task runs


@pytest.mark.parametrize(
    ("sql", "uris"),
    [
        ("CREATE MATERIALIZED VIEW shop.v AS SELECT 1", ["x-tidemark://views/shop.v"]),
        ("ALTER DYNAMIC TABLE shop.v REFRESH", ["x-tidemark://views/shop.v"]),
        ("ALTER DYNAMIC TABLE shop.v SUSPEND", []),
        ("ALTER DYNAMIC TABLE {{ params.v }} REFRESH", []),
        ("refresh.sql", []),
    ],
)
def test_the_asset_of_a_view_that_a_statement_refreshes_is_an_outlet(sql: str, uris: list[str]) -> None:
    assert [outlet.uri for outlet in StreamSQLOperator(task_id="it", sql=sql).outlets] == uris
