"""One run for each partition: a run wakes the next, each partition is read once, and no run wakes itself for ever.

What Airflow's scheduler does with the events, one run for each key, is done here by hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.airflow.fan_out import COLUMNS, Shop, tokens_in_state
from tests.airflow.runs import Lake, Outcome
from tests.tiers import nightly

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
DAGS = Path(__file__).parents[2] / "dags"
BEGIN = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def dags(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DAGS))
    return importlib.import_module("change_stream_continuous")


@pytest.fixture
def board(lake: Lake, tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A board that is watched as one partition, and the table that mirrors it."""
    shop = Shop.at(lake.spark, tmp_path, monkeypatch.setenv, "nyc.board", "board_records").open()
    shop.lake.create("nyc.board_continuously", COLUMNS)
    return shop


def woken(outcome: Outcome) -> list[str]:
    """Keys of the events that the run has made."""
    from airflow.models.asset import AssetEvent  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).filter_by(source_dag_id=outcome.run.dag_id, source_run_id=outcome.run.run_id)
        return [str(event.partition_key) for event in found.order_by(AssetEvent.id)]


def run_all(run_dag: RunDag, dags: ModuleType, keys: list[str]) -> list[tuple[str, str]]:
    """(token, state of its commit) for each run of the reader, in order, until none wakes another."""
    done: list[tuple[str, str]] = []
    while keys and len(done) < 20:
        token, *keys = keys
        at = BEGIN + timedelta(seconds=len(done), microseconds=hash(token) % 1000)
        outcome = run_dag(dags.reader_dag, at=at, conf={"token": token})
        assert outcome.state == "success"
        done.append((token, outcome.task("commit")))
        keys += woken(outcome)
    assert keys == [], "a run wakes runs for ever"
    return done


@nightly("a run of a DAG for each partition")
def test_each_partition_is_read_by_a_run_of_its_own_after_its_parents(
    run_dag: RunDag, board: Shop, dags: ModuleType, warm_spark: Path
) -> None:
    board.change("INSERT INTO {t} SELECT id, 0, 'first' FROM range(20)")
    first = run_dag(dags.capture_dag, at=BEGIN)
    assert first.state == "success"
    assert board.lake.rows("nyc.board_continuously") == []
    keys = woken(first)
    assert len(keys) == 1
    for number in (1, 2):
        board.change(f"INSERT INTO {{t}} SELECT id, {number}, 'more' FROM range({number * 20}, {number * 20 + 20})")
        board.capture(split_rows=10)
    board.change("UPDATE {t} SET status = 'changed'")
    board.capture()
    done = run_all(run_dag, dags, keys)
    now = board.check()
    assert board.lake.rows("nyc.board_continuously") == board.lake.rows("nyc.board")
    tokens = [token for token, _ in done]
    assert tokens[0] == keys[0]
    assert set(tokens) == set(now.partitions)
    assert tokens_in_state(now, "board_continuously") == {"finished": 1, "ready": 2}
    read = [token for token, state in done if state == "success"]
    assert len(read) == len({(token, number) for token, number in _chunks(now)})

    again = run_dag(dags.reader_dag, conf={"token": tokens[-1]})
    assert (again.state, again.task("commit"), woken(again)) == ("success", "skipped", [])
    quiet = run_dag(dags.capture_dag)
    assert (quiet.state, quiet.task("wake"), woken(quiet)) == ("success", "skipped", [])
    board.check()


def _chunks(now: Any) -> list[tuple[str, int]]:
    return [key for seen in now.groups.values() for key in seen.chunks]
