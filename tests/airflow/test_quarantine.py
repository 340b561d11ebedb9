"""A quarantine in real runs: in a group, by template, in a dry run, and shared by a replay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.replay import ReplayWindowOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
DAY = datetime(2026, 4, 1, tzinfo=UTC)
COLUMNS = "id BIGINT, amount BIGINT"


@pytest.fixture(scope="module")
def bank(lake: Lake) -> Lake:
    lake.create("bank.orders", COLUMNS, row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 10), (2, -20), (3, 30)", "bank.orders")
    for name in ("mirror", "history", "copy"):
        lake.create(f"bank.{name}", COLUMNS)
        lake.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (amount > 0)", f"bank.{name}")
    return lake


def group_of(quarantine: str) -> DAG:
    with DAG("bank", schedule=None, params={"bad": "bank.bad"}) as dag:
        create = CreateStreamOperator(task_id="create", stream="bank", on="bank.orders", show_initial_rows=True)
        with stream_transaction("tx", streams="bank") as transaction:
            shared: dict[str, Any] = {"write_as": "append", "quarantine": quarantine}
            WriteStreamOperator(task_id="mirror", target="bank.mirror", **{**shared, "write_as": "merge"}, keys="id")
            WriteStreamOperator(task_id="history", target="bank.history", **shared)
        create >> transaction
    return dag


def bad_rows(bank: Lake) -> list[tuple[Any, ...]]:
    frame = bank.spark.read.format("delta").load(str(bank.root / "bank/bad"))
    return sorted(tuple(row) for row in frame.select("id", "`QUARANTINE$TARGET`", "`QUARANTINE$CONSTRAINTS`").collect())


def test_a_dry_run_names_the_quarantine_and_makes_none(run_dag: RunDag, bank: Lake, warm_spark: Path) -> None:
    with DAG("bank_dry", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="dry", on="bank.orders", show_initial_rows=True)
        create >> ConsumeStreamOperator(
            task_id="dry", stream="dry", target="bank.copy", write_as="append", quarantine="bank.none", dry_run=True
        )
    assert run_dag(dag).returned("dry")["quarantine"] == "bank.none"
    assert not (bank.root / "bank/none").exists()


def test_a_mistyped_key_costs_no_job_and_leaves_no_quarantine(
    run_dag: RunDag, bank: Lake, spark_submit: Callable[[str], Path], caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    started = spark_submit("exit 9")
    mistyped: dict[str, Any] = {"write_as": "merge", "keys": "idd", "target": "bank.copy", "quarantine": "bank.never"}
    with DAG("bank_mistyped", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="typo", on="bank.orders", show_initial_rows=True)
        consume = ConsumeStreamOperator(task_id="consume", stream="typo", **mistyped)
        with stream_transaction("tx", streams="typo") as transaction:
            WriteStreamOperator(task_id="copy", **mistyped)
        create >> [consume, transaction]
    failed = run_dag(dag)
    assert (failed.task("create"), failed.task("consume"), failed.task("tx.begin")) == ("success", "failed", "failed")
    assert "the stream has no column idd" in caplog.text + capfd.readouterr().out
    assert not started.exists()
    assert not (bank.root / "bank/never").exists()


def test_writers_of_a_group_share_one_and_its_commit_tells_how_many(
    run_dag: RunDag, bank: Lake, warm_spark: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = run_dag(group_of("{{ params.bad }}"), at=DAY)
    assert done.state == "success"
    assert bank.rows("bank.mirror") == bank.rows("bank.history") == [(1, 10), (3, 30)]
    assert bad_rows(bank) == [(2, "bank.history", ["CHECK positive"]), (2, "bank.mirror", ["CHECK positive"])]
    assert done.returned("tx.mirror")["bank.bad"] == {"quarantined": 1}
    (event,) = done.events("bank")
    assert (event["rows"], event["quarantined"]) == (4, 2)
    assert "1 rows broke a constraint of the target and are in quarantine: bank.bad" in caplog.text

    with DAG("bank_again", schedule=None) as again:
        ReplayWindowOperator(
            task_id="again",
            stream="bank",
            run=done.run.run_id,
            target="bank.copy",
            write_as="append",
            quarantine="bank.bad",
        )
    assert run_dag(again, at=DAY).returned("again")["quarantined"] == 1
    assert (bank.rows("bank.copy"), len(bad_rows(bank))) == ([(1, 10), (3, 30)], 3)


def test_a_quarantine_in_a_group_must_have_a_name(
    run_dag: RunDag, bank: Lake, spark_submit: Callable[[str], Path], caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    spark_submit("exit 9")
    assert run_dag(group_of("{{ none }}")).task("tx.begin") == "failed"
    assert "the number of statements is settled when the DAG is parsed" in caplog.text + capfd.readouterr().out
