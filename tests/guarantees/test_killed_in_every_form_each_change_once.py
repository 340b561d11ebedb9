"""Kill -9 while a view's stream, two streams at once, a part of a backlog or a past window is delivered; then retry.

Each form at every point that a client passes.
"""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_client import STEPS, VIEW, Case, cases, make_view
from tests.guarantees.killed_processes import CLIENT_POINTS, run_script
from tests.tiers import nightly, selected
from tidemark.client import connect
from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import MarkKind, parse_mark
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.worker.streams import get_stream, stream_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_FORM = (
    "tests/guarantees/test_killed_anywhere_each_change_once.py::test_a_retry_after_a_kill_delivers_each_change_once"
)
pytestmark = [pytest.mark.e2e, pytest.mark.spark, nightly("a start of Spark for each form and point", ONE_FORM)]

KILLED = [f"{form}:{point}" for form in STEPS for point in CLIENT_POINTS]

BEFORE = [(1, "one", "Bern"), (2, "two", "Basel"), (3, "three", "Chur")]
AFTER = [(1, "one", "Zug"), (2, "zwei", "Basel"), (4, "four", "Genf")]
CHANGES = [
    (1, "one", "Bern", "DELETE"),
    (1, "one", "Zug", "INSERT"),
    (2, "two", "Basel", "DELETE"),
    (2, "zwei", "Basel", "INSERT"),
    (3, "three", "Chur", "DELETE"),
    (4, "four", "Genf", "INSERT"),
]
CHANGES_OF_BOTH = [
    (1, None, "Bern", "DELETE"),
    (1, None, "Zug", "INSERT"),
    (2, "two", None, "DELETE"),
    (2, "zwei", None, "INSERT"),
    (3, "three", None, "DELETE"),
    (4, None, "Genf", "INSERT"),
    (4, "four", None, "INSERT"),
]
WINDOWS = {"view": 1, "several": 1, "bounded": 3, "replay": 1}


run = partial(run_script, "killed_client.py")


def prepare(spark: SparkSession, home: Path, killed: list[str]) -> None:
    """Two tables, a view on them, streams and targets for each case; then five commits."""
    customers, cities = (f"delta.`{home}/{name}`" for name in ("customers", "cities"))
    tracked = "USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    spark.sql(f"CREATE TABLE {customers} (id INT, name STRING) {tracked}")
    spark.sql(f"CREATE TABLE {cities} (id INT, city STRING) {tracked}")
    spark.sql(f"INSERT INTO {customers} VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    spark.sql(f"INSERT INTO {cities} VALUES (1, 'Bern'), (2, 'Basel'), (3, 'Chur')")
    make_view(spark, home)
    try:
        lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home))
        for case in cases(home, killed):
            several = case.form == "several"
            lake.create_stream(f"s_{case.name}", on=f"{home}/customers" if several else VIEW)
            if several:
                lake.create_stream(f"c_{case.name}", on=f"{home}/cities")
            create_targets(spark, case)
        lake.close()
    finally:
        spark.sql(f"DROP VIEW {VIEW}")
    spark.sql(f"INSERT INTO {customers} VALUES (4, 'four')")
    spark.sql(f"UPDATE {customers} SET name = 'zwei' WHERE id = 2")
    spark.sql(f"DELETE FROM {customers} WHERE id = 3")
    spark.sql(f"INSERT INTO {cities} VALUES (4, 'Genf')")
    spark.sql(f"UPDATE {cities} SET city = 'Zug' WHERE id = 1")


def create_targets(spark: SparkSession, case: Case) -> None:
    wanted = BEFORE if case.form != "several" else [row[:2] for row in BEFORE]
    columns = "id INT, name STRING, city STRING" if case.form != "several" else "id INT, name STRING"
    for suffix in ("", "_again") if case.form == "replay" else ("",):
        spark.createDataFrame(wanted, columns).write.format("delta").save(case.path(f"mirror{suffix}"))
        history = f"delta.`{case.path(f'history{suffix}')}`"
        spark.sql(f"CREATE TABLE {history} (id INT, name STRING, city STRING, action STRING) USING delta")


Killed = tuple[Path, dict[str, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Killed:
    """Each case's first attempt, then one process that retries them all."""
    home = tmp_path_factory.mktemp("killed_forms")
    names = selected(request, "name")
    prepare(spark, home, names)
    first = {name: run(home, name, "--kill") for name in names}
    retried = run(home, *names)
    assert retried.returncode == 0, retried.stdout[-4000:] + retried.stderr[-4000:]
    return home, first


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("name", KILLED)
def test_a_retry_after_a_kill_delivers_each_change_once(spark: SparkSession, killed: Killed, name: str) -> None:
    home, first = killed
    (case,) = cases(home, [name])
    assert first[name].returncode == -9, first[name].stdout[-3000:] + first[name].stderr[-3000:]

    several = case.form == "several"
    suffix = "_again" if case.form == "replay" else ""
    mirror, history = (case.path(f"{kind}{suffix}") for kind in ("mirror", "history"))
    assert rows(spark, mirror) == ([row[:2] for row in AFTER] if several else AFTER)
    assert rows(spark, history) == sorted(CHANGES_OF_BOTH if several else CHANGES, key=str)
    assert [write_marks(path) for path in (mirror, history)] == [WINDOWS[case.form]] * 2

    store = ControlStore(f"sqlite:///{home}/control.db")
    places = {"customers": head(home, "customers"), "cities": head(home, "cities")}
    moved = get_stream(store, f"s_{case.name}")
    assert moved.offset.version == (places["customers"] if several else sum(places.values()))
    if several:
        assert get_stream(store, f"c_{case.name}").offset.version == places["cities"]
    moves = {"view": 2, "several": 2, "bounded": 4, "replay": 3}  # the creation, each window, a replay
    assert len(stream_history(store, moved.name)) == moves[case.form]


def rows(spark: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in spark.read.format("delta").load(path).collect()), key=str)


def write_marks(path: str) -> int:
    log = DeltaLog.open(path)
    marks = [parse_mark(commit.user_metadata) for commit in log.commits(0, log.head())]
    return sum(mark is not None and mark.kind is MarkKind.WRITE for mark in marks)


def head(home: Path, table: str) -> int:
    return DeltaLog.open(f"{home}/{table}").head()
