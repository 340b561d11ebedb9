"""For random rows and constraints: target and quarantine together are the window, and no row is in both."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.quarantine_world import new_world
from tests.tiers import some

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CHECKS = (
    "v > 0",
    "v % 2 = 0",
    "id < v",
    "w IN ('a', 'bb')",
    "w IS NULL OR length(w) < 2",
    "v IS NOT NULL",
    "10 / v > 2",
)
TYPES = {"v": ("INT", "TINYINT", "INT NOT NULL"), "w": ("STRING", "VARCHAR(1)", "STRING NOT NULL")}
NUMBERS = itertools.count()

rows = st.lists(
    st.tuples(st.sampled_from([None, -300, -1, 0, 2, 3, 300]), st.sampled_from([None, "a", "bb"])),
    min_size=1,
    max_size=8,
)


def literal(value: int | str | None) -> str:
    return "NULL" if value is None else repr(value)


def values(given_rows: list[tuple[int | None, str | None]], first: int) -> str:
    return ", ".join(f"({id_}, {literal(v)}, {literal(w)})" for id_, (v, w) in enumerate(given_rows, first))


@pytest.mark.parametrize("turn", some(range(20), now=(0,)))
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=rows,
    second=rows,
    checks=st.sets(st.sampled_from(CHECKS), max_size=2),
    v=st.sampled_from(TYPES["v"]),
    w=st.sampled_from(TYPES["w"]),
    by_key=st.booleans(),
)
def test_each_row_is_in_the_target_or_in_quarantine_and_the_target_keeps_its_constraints(
    spark: SparkSession,
    tmp_path: Path,
    turn: int,
    first: list[tuple[int | None, str | None]],
    second: list[tuple[int | None, str | None]],
    checks: set[str],
    v: str,
    w: str,
    by_key: bool,
) -> None:
    root = tmp_path / str(next(NUMBERS))
    root.mkdir()
    world = new_world(spark, root)
    try:
        world.source("id INT, v INT, w STRING").target(f"id INT, v {v}, w {w}", *sorted(checks))
        world.sql(f"INSERT INTO {{orders}} VALUES {values(first, 0)}")
        keys = ["id"] if by_key else []
        done = world.write(*keys)
        target, bad = world.rows(), world.rows("bad", ["id", "v", "w"])
        assert sorted(target + bad, key=repr) == world.rows("orders")  # ids are unique: none is there twice
        assert (done.rows, done.quarantined) == (len(target), len(bad))
        for check in checks:
            assert spark.sql(f"SELECT * FROM {world.name('target')} WHERE NOT coalesce({check}, false)").collect() == []
        world.sql(f"INSERT INTO {{orders}} VALUES {values(second, 100)}")
        world.write(*keys)
        after = world.rows() + world.rows("bad", ["id", "v", "w"])
        assert sorted(after, key=repr) == world.rows("orders")
    finally:
        world.lake.close()
        shutil.rmtree(root)
