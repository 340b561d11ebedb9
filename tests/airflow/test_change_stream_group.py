"""The task group of a change stream: its shape, and runs that end before Spark would start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tests.control.change_stream_model import ChangeStreamWorld, segment
from tests.guarantees.partition_invariants import require_invariants
from tidemark.change_streams.worker.groups import create_group, pause_group
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.task_groups.change_stream_partitions import change_stream_partitions

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


def reading(**arguments: Any) -> DAG:
    asked = {"write_as": "append", "target": "db.target", "waves": 2, **arguments}
    with DAG("reading", schedule=None) as dag:
        change_stream_partitions("deliver", change_stream="s", consumer_group="g", **asked)
    return dag


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> ChangeStreamWorld:
    """A change stream with load in its two partitions, captured an hour ago, a group at its beginning, no target."""
    url = f"sqlite:///{tmp_path}/control.db"
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", url)
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    made = ChangeStreamWorld(ControlStore(url), tmp_path / "db")
    made.clock.now = datetime.now(UTC) - timedelta(hours=1)
    at = made.clock.now + timedelta(seconds=1)
    made.batch(*(segment(one.token, at, 5) for one in made.active()))
    create_group(made.store, "s", "g", "earliest")
    return made


def test_each_wave_follows_the_one_before_and_nothing_that_failed_is_hidden() -> None:
    dag = reading(trigger_again=True, read={"pool": "spark", "max_active_tis_per_dagrun": 3})
    order = ["capture", "plan_1", "read_1", "commit_1", "plan_2", "read_2", "commit_2", "finish"]
    for before, after in pairwise(order):
        assert f"deliver.{before}" in dag.get_task(f"deliver.{after}").upstream_task_ids
    assert dag.get_task("deliver.all_done").upstream_task_ids == {f"deliver.{name}" for name in (*order, "again")}
    assert dag.get_task("deliver.all_done").trigger_rule == "none_failed"
    read = dag.get_task("deliver.read_1")
    assert (read.pool, read.max_active_tis_per_dagrun) == ("spark", 3)


def test_the_log_expires_at_last_if_it_is_to() -> None:
    dag = reading(expire=True)
    assert dag.get_task("deliver.expire").upstream_task_ids == {"deliver.finish"}
    assert "deliver.expire" in dag.get_task("deliver.all_done").upstream_task_ids
    assert not reading().has_task("deliver.expire")


def test_no_wave_at_all_is_refused_when_the_file_is_parsed() -> None:
    with pytest.raises(InvalidArgument, match="one at least"):
        reading(waves=0)


def test_a_dag_that_allows_no_run_of_a_task_is_refused_when_it_is_to_be_triggered_again() -> None:
    asked: Any = {"change_stream": "s", "consumer_group": "g", "write_as": "append", "target": "db.target"}
    kinds: Any = (["manual"], ["manual", "operator_triggered"])
    for runs in kinds:
        with DAG("allowing", schedule=None, allowed_run_types=runs):
            change_stream_partitions("deliver", **asked)
            if "operator_triggered" in runs:
                change_stream_partitions("again", trigger_again=True, **asked)
                continue
            with pytest.raises(InvalidArgument, match="lacks 'operator_triggered'"):
                change_stream_partitions("again", trigger_again=True, **asked)


def test_a_paused_group_is_handed_out_nothing(
    run_dag: RunDag, world: ChangeStreamWorld, spark_submit: Callable[[str], Path]
) -> None:
    started = spark_submit("exit 1")
    pause_group(world.store, "s", "g")
    done = run_dag(reading(trigger_again=True, expire=True))
    require_invariants(TidemarkHook().open_store(), "s")
    assert done.returned("deliver.expire")["rows"] == 0
    assert (done.state, done.returned("deliver.plan_1"), done.task("deliver.commit_1")) == ("success", [], "success")
    assert (done.returned("deliver.finish")["paused"], done.task("deliver.again")) == (True, "skipped")
    assert not started.exists()


def test_a_way_to_write_that_there_is_not_is_refused_when_the_file_is_parsed() -> None:
    with pytest.raises(InvalidArgument, match="write_as='upsert'"):
        reading(write_as="upsert")
    reading(write_as="{{ params.how }}")


@pytest.mark.parametrize("arguments", [{}, {"write_as": "merge", "table": "db.other"}])
def test_a_sink_that_cannot_be_written_fails_the_run_before_spark_starts_and_starts_no_other(
    run_dag: RunDag, world: ChangeStreamWorld, spark_submit: Callable[[str], Path], arguments: dict[str, Any]
) -> None:
    started = spark_submit("exit 1")
    done = run_dag(reading(trigger_again=True, plan={"chunks_per_task": 1}, **arguments))
    require_invariants(TidemarkHook().open_store(), "s")
    reads = [one for one in done.run.get_task_instances() if one.task_id == "deliver.read_1"]
    assert [str(one.state) for one in reads] == ["failed", "failed"]
    assert sorted(str(one.rendered_map_index) for one in reads) == ["[0000, 8000)", "[8000, 10000)"]
    assert (done.state, done.returned("deliver.finish")["left"]) == ("failed", 2)
    assert done.task("deliver.again") == "upstream_failed"
    assert not started.exists()


def test_a_job_that_dies_fails_its_partitions_for_this_run_alone(
    run_dag: RunDag, world: ChangeStreamWorld, spark_submit: Callable[[str], Path]
) -> None:
    started = spark_submit("exit 1")
    world.new_table("target")
    done = run_dag(reading())
    require_invariants(TidemarkHook().open_store(), "s")
    assert (done.state, done.task("deliver.finish")) == ("failed", "failed")
    assert done.returned("deliver.plan_2") == []
    assert started.read_text().count("\n") == 1
    again = run_dag(reading())
    assert len(again.returned("deliver.plan_1")[0]["chunks"]) == 2
