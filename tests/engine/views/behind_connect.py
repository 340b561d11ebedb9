"""A stream on a view, read through a Spark Connect server: a program of its own, for it has no JVM.

python -m tests.engine.views.behind_connect sc://… DIRECTORY
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.engine.views.view_lake import ViewLake
from tidemark.engine.workspace import Workspace


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
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
