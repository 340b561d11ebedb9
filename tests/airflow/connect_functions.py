"""Functions that jobs behind Spark Connect import: they lie beside the DAG's file, as users' functions do."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

_EXCLAMATION = "!"
APP_ID = "spark.databricks.delta.write.txnAppId"


def keep_names(tx: Any) -> None:
    """Writes both declared targets: rows by API, a count by SQL."""
    inserted = tx.stream("cf").where("`METADATA$ACTION` = 'INSERT'")
    tx.append(inserted.select("id", "name"), "w.names")
    tx.sql("INSERT INTO w.counts SELECT count(*) AS n FROM cf")


def count_for_ever(tx: Any) -> None:
    """A query that takes hours, and then a write. One task and no second stage: Spark may begin a stage just after it
    has cancelled its query, and only the server could end that one.
    """
    forever = tx.spark.range(0, 10**14, 1, 1).where("id % 7 = 3")
    tx.append(forever.selectExpr("count(*) AS n"), tx.targets[0])


def count_until_the_gate(tx: Any) -> None:
    """As `count_for_ever`, or nothing but a row once the gate is there, beside the directories of jobs."""
    if not (Path.cwd().parent / "gate").exists():
        count_for_ever(tx)
    tx.append(tx.spark.range(1).selectExpr("count(*) AS n"), tx.targets[0])


def count_cores(tx: Any) -> None:
    """Asks the JVM of its driver."""
    tx.append(tx.spark.range(tx.spark.sparkContext.defaultParallelism).selectExpr("count(*) AS n"), tx.targets[0])


def meet_the_other(tx: Any) -> None:
    """Makes a view and a setting, waits until the other job has made its own, and writes what it can see of that."""
    (name,) = tx.streams
    there = Path(os.environ["MEETING"])
    tx.spark.range(1).createOrReplaceTempView(f"view_of_{name}")
    tx.spark.conf.set(f"tidemark.test.{name}", "set")
    (there / name).touch()
    other = _other(there, name)
    seen = [view for view in (f"view_of_{other}",) if tx.spark.catalog.tableExists(view)]
    seen += [key for key in (f"tidemark.test.{other}", APP_ID) if tx.spark.conf.get(key, None) is not None]
    mine = tx.spark.catalog.tableExists(f"view_of_{name}")
    tx.append(tx.spark.sql(f"SELECT '{','.join(seen)}' AS seen, {str(mine).lower()} AS mine"), tx.targets[0])


def _other(there: Path, name: str) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = [entry.name for entry in there.iterdir() if entry.name != name]
        if found:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError("the other job never came")


def shout(text: str) -> str:
    """A Python UDF runs in Spark's own Python, which does not know this module."""
    return f"{text}{_EXCLAMATION}"


def shout_names(tx: Any) -> None:
    """Appends all names, by a UDF of this module."""
    from pyspark.sql import functions as F

    (stream,) = tx.streams
    loud = F.udf(shout, "string")
    tx.append(tx.stream(stream).select("id", loud("name").alias("name")), tx.targets[0])
