"""Kill -9 around the statements of a target and its quarantine, and a retry: each row is in one of the two, once.

Between the two, and at every point that a client passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_processes import CLIENT_POINTS, run_script
from tests.guarantees.killed_quarantine import name_of
from tests.tiers import nightly
from tidemark.client import connect
from tidemark.control.store import ControlStore
from tidemark.delivery.model.quarantine import CONSTRAINTS, TARGET
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETRIED = "tests/engine/test_quarantine_once.py::test_a_retry_finishes_and_tells_the_same_number"
pytestmark = [pytest.mark.e2e, pytest.mark.spark, nightly("a start of Spark for each point", RETRIED)]

BETWEEN = ("write1.after",)


run = partial(run_script, "killed_quarantine.py")


def prepare(spark: SparkSession, home: Path, points: Sequence[str]) -> None:
    """One source, and for each point a stream on it and a target that wants v > 0."""
    source = f"delta.`{home}/source`"
    spark.sql(f"CREATE TABLE {source} (id INT, v INT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home))
    for point in points:
        lake.create_stream(f"s_{name_of(point)}", on=f"{home}/source")
        target = f"delta.`{home}/target_{name_of(point)}`"
        spark.sql(f"CREATE TABLE {target} (id INT, v INT) USING delta")
        spark.sql(f"ALTER TABLE {target} ADD CONSTRAINT positive CHECK (v > 0)")
    lake.close()
    spark.sql(f"INSERT INTO {source} VALUES (1, 1), (2, -2), (3, 3), (4, NULL)")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("points", [BETWEEN, tuple(CLIENT_POINTS)], ids=("between", "all"))
def test_a_kill_around_either_statement_loses_and_doubles_no_row(
    spark: SparkSession, tmp_path: Path, points: tuple[str, ...]
) -> None:
    """The constraint is dropped after the kill, so a second look at the target would sort otherwise."""
    prepare(spark, tmp_path, points)
    for point in points:
        killed = run(tmp_path, point, "--kill")
        assert killed.returncode == -9, killed.stdout[-3000:] + killed.stderr[-3000:]
        spark.sql(f"ALTER TABLE delta.`{tmp_path}/target_{name_of(point)}` DROP CONSTRAINT positive")
    retried = run(tmp_path, *points)
    assert retried.returncode == 0, retried.stdout[-4000:] + retried.stderr[-4000:]
    store = ControlStore(f"sqlite:///{tmp_path}/control.db")
    bad = spark.read.format("delta").load(f"{tmp_path}/bad")
    for point in points:
        target = f"{tmp_path}/target_{name_of(point)}"
        good = {tuple(row) for row in spark.read.format("delta").load(target).collect()}
        quarantined = bad.where(f"`{TARGET}` = '{target}'").select("id", "v", f"`{CONSTRAINTS}`").collect()
        if CLIENT_POINTS.index(point) < CLIENT_POINTS.index("write1.after"):  # the target asks for nothing any more
            assert (len(good), quarantined) == (4, [])
        else:
            assert good == {(1, 1), (3, 3)}
            assert sorted(map(tuple, quarantined)) == [(2, -2, ["CHECK positive"]), (4, None, ["CHECK positive"])]
        assert get_stream(store, f"s_{name_of(point)}").offset.version == 1
