"""Random histories of tables with and without row tracking: each window by key against two full versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.tiers import some
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, StreamMode

pytestmark = pytest.mark.spark

KEYS = ("a", "b")
STATEMENTS = {
    "insert": "INSERT INTO {t} SELECT * FROM ({come}) s WHERE s.a NOT IN (SELECT a FROM {t})",
    "update": "UPDATE {t} SET v = 'v{m}' WHERE a >= {n}",
    "same": "UPDATE {t} SET v = v WHERE a = {n}",
    "move": "UPDATE {t} SET a = a + 1",
    "delete": "DELETE FROM {t} WHERE a = {n}",
    "merge": "MERGE INTO {t} t USING ({come}) s ON s.a = t.a WHEN MATCHED AND s.a = {m} THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "overwrite": "INSERT OVERWRITE {t} {come}",
    "optimize": "OPTIMIZE {t}",
    "restore": "RESTORE TABLE {t} TO VERSION AS OF {back}",
    "track": "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
}

Row = dict[str, Any]
numbers = st.integers(0, 5)
steps = st.lists(st.tuples(st.sampled_from([*STATEMENTS, "reload"]), numbers, numbers), min_size=3, max_size=9)


@dataclass
class Table:
    spark: SparkSession
    path: Path
    restorable_from: int = 1

    @property
    def name(self) -> str:
        return f"delta.`{self.path}`"

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(str(self.path))

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=self.name))

    def do(self, operation: str, n: int, m: int) -> None:
        """Keys stay unique: `a` alone would do, `b` is NULL for half of them."""
        if operation == "reload":
            rows = self.spark.createDataFrame(list(self.rows(self.log.head()).values()), "a INT, b STRING, v STRING")
            rows.repartition(2).write.format("delta").mode("overwrite").save(str(self.path))
            return
        come = f"SELECT CAST(id AS INT) a, IF(id % 2 = 0, NULL, 'o') b, 'v{m}' v FROM range({n}, {n + m})"
        back = max(self.restorable_from, self.log.head() - n)
        self.sql(STATEMENTS[operation].format(t="{t}", n=n, m=m, come=come, back=back))
        if operation == "track":
            self.restorable_from = self.log.head()

    def rows(self, version: int) -> dict[str, Row]:
        frame = self.spark.read.format("delta").option("versionAsOf", version).load(str(self.path))
        found: dict[str, Row] = {}
        for row in frame.collect():
            key = f'{{"a":{row.a},"b":{"null" if row.b is None else chr(34) + row.b + chr(34)}}}'
            assert key not in found, "the history has to keep keys unique"
            found[key] = row.asDict()
        return found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake").as_uri(), "t") as room:
        yield room


@pytest.mark.parametrize("turn", some(range(20), now=(0,)))
@settings(
    max_examples=2, deadline=None, database=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(tracked=st.booleans(), vectors=st.booleans(), done=steps)
def test_windows_by_key_equal_the_difference_of_full_versions(
    spark: SparkSession,
    workspace: Workspace,
    tmp_path_factory: pytest.TempPathFactory,
    turn: int,
    tracked: bool,
    vectors: bool,
    done: list[tuple[str, int, int]],
) -> None:
    table = Table(spark, Path(mkdtemp(dir=tmp_path_factory.getbasetemp())) / "t")
    switches = {"RowTracking": tracked, "DeletionVectors": vectors}
    listed = ", ".join(f"'delta.enable{name}' = '{str(on).lower()}'" for name, on in switches.items())
    table.sql(f"CREATE TABLE {{t}} (a INT, b STRING, v STRING) USING delta TBLPROPERTIES ({listed})")
    table.sql("INSERT INTO {t} SELECT CAST(id AS INT), IF(id % 2 = 0, NULL, 'o'), 'v0' FROM range(4)")
    starts = [table.log.head()]
    for operation, n, m in done:
        table.do(operation, n, m)
        starts.append(table.log.head())
    for start, end in sorted(
        {(starts[0], starts[-1]), (starts[0], starts[len(starts) // 2]), (starts[-2], starts[-1])}
    ):
        assert shown(table, start, end, workspace) == difference(table.rows(start), table.rows(end)), (start, end, done)


def difference(old: dict[str, Row], new: dict[str, Row]) -> list[tuple[Any, ...]]:
    """What a window has to show, from the rows of both versions by key."""
    gone = [("DELETE", key in new, key, *row.values()) for key, row in old.items() if new.get(key) != row]
    come = [("INSERT", key in old, key, *row.values()) for key, row in new.items() if old.get(key) != row]
    return sorted(gone + come, key=repr)


def shown(table: Table, start: int, end: int, workspace: Workspace) -> list[tuple[Any, ...]]:
    plan = plan_changes(table.log, start, end, StreamMode.STANDARD, reader="s", keys=KEYS)
    rows = read_changes(table.spark, table.log, plan, workspace).collect()
    return sorted(
        ((row[ACTION], row[IS_UPDATE], row[ROW_ID].partition(":")[2], row.a, row.b, row.v) for row in rows), key=repr
    )
