"""Partitions that split and merge are read by mapped tasks: parents first, each record once, whatever fails between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.fan_out import COLUMNS, STREAM, Shop, tokens_in_state
from tests.airflow.runs import Lake, Outcome
from tidemark.change_streams.planning.tokens import parse_token
from tidemark.change_streams.worker.groups import create_group
from tidemark.task_groups.change_stream_partitions import change_stream_partitions

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
DAY = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shop(lake: Lake, airflow_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One partition that was split in two, whose halves were merged again; groups read it from the beginning."""
    with pytest.MonkeyPatch.context() as environment:
        shop = Shop.at(lake.spark, tmp_path_factory.mktemp("fan_out"), environment.setenv).open()
        for number in range(2):
            shop.change(f"INSERT INTO {{t}} SELECT id, {number}, 'new' FROM range({number * 30}, {number * 30 + 30})")
            shop.capture(split_rows=10)
        for number in range(5):
            shop.change(f"UPDATE {{t}} SET status = 'quiet {number}' WHERE id % 7 = {number}")
            shop.capture(merge_rows=1_000)
        shop.change("DELETE FROM {t} WHERE id % 5 = 0")
        shop.capture()
        yield shop


def test_the_tree_of_these_tests_has_a_split_and_a_merge(shop: Shop) -> None:
    partitions = shop.check().partitions.values()
    assert sorted(len(one.parents) for one in partitions)[-1] == 2
    assert Counter(parent for one in partitions for parent in one.parents).most_common(1)[0][1] >= 2


def reading(name: str, waves: int = 3, **arguments: Any) -> DAG:
    with DAG(name, schedule=None) as dag:
        change_stream_partitions("deliver", change_stream=STREAM, consumer_group=name, waves=waves, **arguments)
    return dag


def labels(outcome: Outcome, task_id: str) -> list[str]:
    found = outcome.run.get_task_instances()
    return sorted(str(one.rendered_map_index) for one in found if one.task_id == task_id and one.state == "success")


def states(outcome: Outcome, task_id: str) -> list[str]:
    return sorted(str(one.state) for one in outcome.run.get_task_instances() if one.task_id == task_id)


def test_a_mirror_is_right_after_waves_over_a_split_and_a_merge(run_dag: RunDag, shop: Shop, warm_spark: Path) -> None:
    shop.lake.create("shop.mirror", COLUMNS)
    create_group(shop.store, STREAM, "mirrored", "earliest")
    merged = {"write_as": "merge", "target": "shop.mirror"}
    done = run_dag(reading("mirrored", waves=3, plan={"chunks_per_task": 1}, **merged), at=DAY)
    now = shop.check()
    assert done.state == "success"
    assert shop.lake.rows("shop.mirror") == shop.lake.rows("shop.orders")
    assert done.returned("deliver.finish")["left"] == 0
    assert set(tokens_in_state(now, "mirrored")) <= {"finished", "ready"}
    assert labels(done, "deliver.read_1") == ["[0000, 10000)"]
    halves = labels(done, "deliver.read_2")
    assert len(halves) == 2
    assert (halves[0].split(",")[0], halves[1].split(", ")[1]) == ("[0000", "10000)")
    versions = shop.lake.version("shop.mirror")
    again = run_dag(reading("mirrored", waves=3, plan={"chunks_per_task": 1}, **merged), at=DAY)
    assert (again.state, shop.lake.version("shop.mirror")) == ("success", versions)
    assert states(again, "deliver.read_1") == ["skipped"]
    assert warm_spark.read_text().count("\n") == 4
    shop.check()


def test_tokens_share_a_task_and_more_than_airflow_maps_over_is_never_planned(
    run_dag: RunDag, shop: Shop, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    create_group(shop.store, STREAM, "bundled", "earliest")
    mods = "mods ARRAY<STRUCT<keys: STRING, new_values: STRING, old_values: STRING>>"
    shop.lake.create("shop.changes", f"commit_timestamp TIMESTAMP, record_sequence STRING, mod_type STRING, {mods}")
    appended = {"write_as": "append", "target": "shop.changes", "waves": 3}
    done = run_dag(reading("bundled", plan={"chunks_per_task": 1}, **appended), at=DAY)
    shop.check()
    assert done.state == "success"
    assert [len(labels(done, f"deliver.read_{wave}")) for wave in (1, 2, 3)] == [1, 1, 1]
    assert done.returned("deliver.finish")["left"] == 1
    run_dag(reading("bundled", plan={"chunks_per_task": 5}, **appended))
    shop.check()
    kinds = Counter(row[2] for row in shop.lake.rows("shop.changes") for _ in row[3])
    assert kinds == {"INSERT": 60, "DELETE": 12, "UPDATE": sum(n % 7 < 5 for n in range(60))}


def test_a_failing_partition_blocks_its_descendants_alone_and_is_taken_up_by_the_next_run(
    run_dag: RunDag, shop: Shop, warm_spark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAN_OUT_TAKEN", str(tmp_path / "taken"))
    (tmp_path / "fail").touch()
    create_group(shop.store, STREAM, "failing", "earliest")
    function = {"write_as": "partition_functions:fail_in_the_upper_half", "waves": 3}
    first = run_dag(reading("failing", plan={"chunks_per_task": 1}, **function))
    now = shop.check()
    assert first.state == "failed"
    assert states(first, "deliver.read_2") == ["failed", "success"]
    assert states(first, "deliver.read_3") == ["skipped"]
    assert (first.task("deliver.finish"), first.task("deliver.all_done")) == ("failed", "upstream_failed")
    assert tokens_in_state(now, "failing").get("finished", 0) == 2
    (tmp_path / "fail").unlink()
    second = run_dag(reading("failing", plan={"chunks_per_task": 1}, **function))
    shop.check()
    assert second.state == "success"
    taken = [line.split() for line in (tmp_path / "taken").read_text().splitlines()]
    assert len({(token, number) for token, number, _ in taken}) == len(taken)
    keys = Counter(int(key) for _, _, listed in taken for key in listed.split(","))
    assert sum(keys.values()) == 60 + 12 + sum(n % 7 < 5 for n in range(60))
    order = [token for token, _, _ in taken]
    root, upper = order[0], next(token for token in order if parse_token(token).hi == 0x10000 and parse_token(token).lo)
    assert order.index(upper) > order.index(root)
    assert parse_token(order[-1]).hi - parse_token(order[-1]).lo == 0x10000
