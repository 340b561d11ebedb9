"""Random queries over random histories of real tables: what a stream on a view shows is the difference of the query's
own rows at both ends, ids and multiplicity included; append-only, what the inserted rows bring.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.properties.view_trees import Bag, Node, random_tree
from tests.tiers import some_rows
from tidemark.changes.driver.views.catalog import resolve_view
from tidemark.changes.driver.views.read import read_view_changes, read_view_rows
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, BaseWindow, StreamMode, TableRef

pytestmark = pytest.mark.spark

VIEWS_OF_A_LAKE = 10
TABLES = 3
COMMITS, FEW = 5, 2
NOW_RUN = [(0, FEW)]  # a seed, and how many commits its tables have
RUNS = [*NOW_RUN, (1, FEW), *((seed, COMMITS) for seed in range(300))]
NOW = datetime(2026, 3, 29, tzinfo=UTC)

TEXTS = ("NULL", "'a'", "'a'", "'b'", "'A'")

Change = tuple[str, bool, tuple[Any, ...]]
Lakes: TypeAlias = "Callable[[int, int], list[History]]"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake").as_uri(), "test") as room:
        yield room


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    """Tables with histories, by number and commits; the last is kept, for the views that follow."""
    kept: dict[tuple[int, int], list[History]] = {}

    def lake(number: int, commits: int) -> list[History]:
        if (number, commits) not in kept:
            dropped(spark, kept)
            home = tmp_path_factory.mktemp("tables")
            kept[number, commits] = made(spark, home, random.Random(number), number, commits)
        return kept[number, commits]

    yield lake
    dropped(spark, kept)


def dropped(spark: SparkSession, kept: dict[tuple[int, int], list[History]]) -> None:
    for table in (table for lake in kept.values() for table in lake):
        spark.sql(f"DROP TABLE {table.name}")
    kept.clear()


@pytest.mark.parametrize(("seed", "commits"), some_rows(RUNS, NOW_RUN))
def test_a_view_shows_the_difference_of_its_own_rows(
    seed: int, commits: int, spark: SparkSession, workspace: Workspace, lakes: Lakes
) -> None:
    lake = lakes(seed // VIEWS_OF_A_LAKE, commits)
    chance = random.Random(seed)
    beyond = seed % 2 == 1
    depth = chance.choice([1, 2, 2, 3])
    tree = random_tree(chance, [table.name for table in lake], beyond=beyond, depth=depth)
    try:
        check(spark, workspace, lake, tree, f"view_{seed}", chance, beyond=beyond)
    finally:
        spark.sql(f"DROP VIEW IF EXISTS view_{seed}")


def check(
    spark: SparkSession,
    workspace: Workspace,
    lake: list[History],
    tree: Node,
    name: str,
    chance: random.Random,
    *,
    beyond: bool,
) -> None:
    """A window of the view in each mode, and its rows at the start, against the oracle."""
    spark.sql(f"CREATE VIEW {name} AS {tree.select()}")
    query = resolve_view(spark, name, beyond_snowflake=beyond)
    used = [table for base in query.bases for table in lake if base.endswith(f".{table.name}")]
    ends = {table.name: sorted(chance.sample(range(1, table.version + 1), k=2)) for table in lake}
    said = f"{ends} {tree.select()}\n" + "\n".join(f"{table.name}: {table.done}" for table in lake)
    windows = [BaseWindow(table.ref, *ends[table.name]) for table in used]
    old, new = (tree.rows([table.bag(ends[table.name][side]) for table in lake]) for side in (0, 1))
    ids: dict[Any, str] = {}
    found = read_view_changes(spark, query, windows, StreamMode.STANDARD, NOW, workspace).rows
    same(found, difference(old, new), ids, said)
    rows = [(i, ("INSERT", False, row)) for i, row in old]
    same(read_view_rows(spark, query, windows, NOW), rows, ids, f"rows {said}")
    if not beyond:
        with_born = tree.rows([table.bag(ends[table.name][0]) + table.born(*ends[table.name]) for table in lake])
        known = {row_id for row_id, _ in old}
        born = [(i, ("INSERT", False, row)) for i, row in with_born if i not in known]
        found = read_view_changes(spark, query, windows, StreamMode.APPEND_ONLY, NOW, workspace).rows
        same(found, born, ids, f"append only {said}")


def difference(old: Bag, new: Bag) -> list[tuple[Any, Change]]:
    """The changes from one result to another, by row id."""
    before, after = dict(old), dict(new)
    assert (len(before), len(after)) == (len(old), len(new)), "the oracle gave an id twice"
    gone = [(i, ("DELETE", i in after, row)) for i, row in old if after.get(i) != row]
    come = [(i, ("INSERT", i in before, row)) for i, row in new if before.get(i) != row]
    return gone + come


def same(found: DataFrame, expected: list[tuple[Any, Change]], ids: dict[Any, str], said: str) -> None:
    """The same changes, and under one row id what has one id; `ids` remembers which, for all reads of the view."""
    assert found.columns == ["k", "n", "v", ACTION, IS_UPDATE, ROW_ID]
    rows = [(row[5], (row[3], row[4], tuple(row[:3]))) for row in map(tuple, found.collect())]
    assert sorted((change for _, change in rows), key=repr) == sorted((c for _, c in expected), key=repr), said
    assert len({(i, change[0]) for i, change in rows}) == len(rows), f"an id stands twice for an action; {said}"
    halves: dict[str, list[Change]] = {}
    for row_id, change in rows:
        halves.setdefault(row_id, []).append(change)
    by_content: dict[str, list[str]] = {}
    for row_id, changes in halves.items():
        by_content.setdefault(repr(sorted(changes, key=repr)), []).append(row_id)
    mine: dict[Any, list[Change]] = {}
    for i, change in expected:
        mine.setdefault(i, []).append(change)
    for i, changes in mine.items():
        candidates = by_content.get(repr(sorted(changes, key=repr)), [])
        assert candidates, f"no row id for {i} {changes}; {said}"
        if len(candidates) == 1:
            assert ids.setdefault(i, candidates[0]) == candidates[0], f"another row id for {i}; {said}"


@dataclass
class History:
    """A table and what each of its versions holds: row id → row."""

    spark: SparkSession
    name: str
    path: Path
    chance: random.Random
    done: list[str] = field(default_factory=list)
    versions: list[dict[int, tuple[Any, ...]]] = field(default_factory=list)

    @property
    def ref(self) -> TableRef:
        log = DeltaLog.open(str(self.path))
        return TableRef(self.name, log.uri, log.state().table_id)

    @property
    def version(self) -> int:
        return DeltaLog.open(str(self.path)).head()

    def sql(self, text: str) -> None:
        self.done.append(text)
        self.spark.sql(text.replace("{t}", self.name))

    def bag(self, version: int) -> Bag:
        return [((row_id,), row) for row_id, row in self.versions[version].items()]  # type: ignore[misc]

    def born(self, start: int, end: int) -> Bag:
        """The rows inserted in the window, as inserted."""
        known = {row_id for version in self.versions[: start + 1] for row_id in version}
        found: dict[int, tuple[Any, ...]] = {}
        for version in self.versions[start + 1 : end + 1]:
            for row_id, row in version.items():
                if row_id not in known:
                    found.setdefault(row_id, row)
        return [((row_id,), row) for row_id, row in found.items()]  # type: ignore[misc]


def made(spark: SparkSession, home: Path, chance: random.Random, seed: int, commits: int) -> list[History]:
    """Tables with random histories, and the rows of all their versions in one query."""
    lake = [History(spark, f"base_{seed}_{number}", home / f"t{number}", chance) for number in range(TABLES)]
    for table in lake:
        vectors = str(chance.random() < 0.6).lower()
        layout = chance.choice(["", "PARTITIONED BY (k)"])
        table.sql(
            f"CREATE TABLE {{t}} (k INT, n INT, v STRING) USING delta {layout} LOCATION '{table.path}' TBLPROPERTIES "
            f"('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = '{vectors}')"
        )
        table.sql(f"INSERT INTO {{t}} VALUES {rows(chance, 5)}")
        for _ in range(4 * commits):
            if table.version < commits:
                act(table)
    for table in lake:
        table.versions = [{} for _ in range(table.version + 1)]
    shots = [shot(table, number, version) for number, table in enumerate(lake) for version in range(table.version + 1)]
    for number, version, row_id, k, n, v in reduce(DataFrame.unionAll, shots).collect():
        lake[number].versions[version][row_id] = (k, n, v)
    return lake


def shot(table: History, number: int, version: int) -> DataFrame:
    frame = table.spark.read.format("delta").option("versionAsOf", version).load(str(table.path))
    return frame.select(F.lit(number), F.lit(version), F.col("_metadata.row_id"), "k", "n", "v")


def rows(chance: random.Random, most: int) -> str:
    def one() -> str:
        k = chance.choice(["NULL", "0", "1", "2", "2", "3"])
        return f"({k}, {chance.choice(['NULL', '0', '1', '2', '5'])}, {chance.choice(TEXTS)})"

    return ", ".join(one() for _ in range(chance.randint(1, most)))


def act(table: History) -> None:
    chance = table.chance
    where = chance.choice(["k = 1", "k = 2", "n < 2", "v = 'a'", "k IS NULL"])
    what = chance.choice(["n = n + 1", "k = k + 1", "v = 'b'", "n = n", "k = 2", "v = NULL"])
    table.sql(
        chance.choice(
            [
                f"INSERT INTO {{t}} VALUES {rows(chance, 3)}",
                f"INSERT INTO {{t}} VALUES {rows(chance, 3)}",
                f"UPDATE {{t}} SET {what} WHERE {where}",
                f"UPDATE {{t}} SET {what} WHERE {where}",
                f"DELETE FROM {{t}} WHERE {where}",
                "MERGE INTO {t} t USING (SELECT 2 AS k, 'm' AS v) s ON t.k = s.k AND t.n = 1 "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, n, v) VALUES (s.k, 1, s.v)",
                "OPTIMIZE {t}",
                f"INSERT OVERWRITE {{t}} VALUES {rows(chance, 3)}",
            ]
        )
    )
