"""Directories in which files appear, change, vanish and come late, against a model of what a pipe must have loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.guarantees.load_world import LoadWorld, pipe_spec

pytestmark = pytest.mark.spark

NAMES = ["a.csv", "b 1.csv", "ü%20.csv", "sub/c.csv", "_hidden.csv", ".x/d.csv"]
values = st.lists(st.one_of(st.integers(-9, 9).map(str), st.just("bad")), max_size=4)
changes = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), values),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just([])),
)
rounds = st.lists(st.lists(changes, max_size=4), min_size=1, max_size=3)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rounds=rounds, most=st.integers(1, 5))
def test_each_file_is_loaded_once_as_it_was_first_seen(
    spark: SparkSession, tmp_path: Path, rounds: list[list[tuple[Any, ...]]], most: int
) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir()
    world = LoadWorld(spark, tmp_path)
    for step in rounds:
        for what, name, lines in step:
            if what == "put":
                world.put(name, lines)
            else:
                world.remove(name)
        world.note()
        world.seen = {name: lines for name, lines in world.seen.items() if not _is_hidden(name)}
        world.run(pipe_spec(tmp_path, max_files=most))
    assert world.rows() == world.expected_rows()
    assert world.reports() == world.expected_reports()
