"""A stream on a view, and a window with large deletion vectors, read through a Spark Connect server: a program of its
own, for it has no JVM.

python -m tests.engine.views.behind_connect sc://… DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.engine.materialized.kept_world import KeptWorld
from tests.engine.views.view_lake import ViewLake
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.model.definitions import KeptKind
from tidemark.model.streams import ACTION, IS_UPDATE, StreamMode


def main(server: str, home: Path) -> None:
    """Print what is found, as JSON."""
    spark = SparkSession.builder.remote(server).getOrCreate()
    (home / "tables").mkdir()
    with Workspace(home.as_uri(), "connect") as workspace:
        spark.sql("CREATE DATABASE shop").collect()
        lake = ViewLake(spark, home / "tables", workspace, "shop")
        lake.table("t", "id INT, k INT, v STRING", "(1, 1, '1'), (2, 2, 'two')")
        lake.table("u", "k INT, w STRING", "(1, 'a'), (2, 'b')")
        lake.mark()
        join = lake.view("v", "SELECT id, v, w, now() AS seen FROM shop.t JOIN shop.u USING (k)")
        groups = lake.view("g", "SELECT k, count(*) AS n FROM shop.t GROUP BY k", beyond=True)
        spark.conf.set("spark.sql.ansi.enabled", "false")
        lenient = lake.view("c", "SELECT id, CAST(v AS INT) AS number FROM shop.t")
        spark.conf.set("spark.sql.ansi.enabled", "true")
        lake.sql("UPDATE shop.u SET w = 'A' WHERE k = 1", "INSERT INTO shop.t VALUES (3, 2, 'three')")
        found = {
            "join": [list(map(str, row)) for row in lake.changes(join)],
            "groups": [list(map(str, row)) for row in lake.changes(groups)],
            "lenient": [list(map(str, row)) for row in lake.changes(lenient)],
            "rows": lake.rows(join).count(),
            "appended": [list(map(str, row)) for row in lake.appended(join)],
            "large": _scattered(lake),
            "kept": _odd_kept_row(spark, home / "kept"),
        }
    sys.stdout.write(json.dumps(found))


def _odd_kept_row(spark: SparkSession, home: Path) -> list[list[str]]:
    """A kept table with a row that its next refresh does not expect."""
    home.mkdir()
    world = KeptWorld(spark, home)
    world.table("orders", "id INT, note STRING", "(1, 'a'), (2, 'b')")
    world.create("v", "SELECT id, note FROM orders WHERE id > 0", "orders", kind=KeptKind.DYNAMIC_TABLE)
    world.refresh("v", "1")
    spark.sql(f"UPDATE delta.`{world.path('kept_v')}` SET note = 'odd' WHERE id = 1")
    world.sql("UPDATE {orders} SET note = 'new' WHERE id = 1")
    world.refresh("v", "2")
    return [list(map(str, row)) for row in world.rows("v")]


def _scattered(lake: ViewLake) -> list[list[str]]:
    """Changes all over one large file, whose vectors are too large for a log."""
    lake.table("large", "id BIGINT, v BIGINT")
    lake.sql("INSERT INTO {db}.large SELECT id, id AS v FROM range(0, 2000000, 1, 1)")
    lake.mark()
    lake.sql("DELETE FROM {db}.large WHERE id % 50 = 0", "UPDATE {db}.large SET v = -v WHERE id % 4 = 1")
    window = lake.window("large")
    log = DeltaLog.open(window.table.path)
    plan = plan_changes(log, window.start, window.end, StreamMode.STANDARD)
    rows = read_changes(lake.spark, log, plan, lake.workspace).groupBy(ACTION, IS_UPDATE).count()
    return sorted(list(map(str, row)) for row in rows.collect())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
