"""Functions that the tests name as writers (`module:function`)."""

from __future__ import annotations

from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemark.errors import TargetDoesNotFit


def write_both(tx):
    rows = tx.stream("s")
    tx.merge(rows, "mirror", ["id"])
    tx.append(rows.groupBy().agg(F.count("*").alias("id"), F.lit("rows").alias("v")), "counts")


def write_one(tx):
    tx.sql("INSERT INTO counts SELECT count(*), 'sql' FROM s")


def write_twice(tx):
    write_one(tx)
    write_one(tx)


def write_elsewhere(tx):
    tx.append(tx.stream("s"), "elsewhere")


def write_from_another_session(tx):
    other = SparkSession.builder.getOrCreate()
    tx.append(other.range(1).selectExpr("id", "'x' AS v"), "counts")


def break_down(tx):
    write_one(tx)
    raise RuntimeError("the user's own mistake")


def go_on_after_a_failure(tx):
    with suppress(TargetDoesNotFit):
        tx.append(tx.stream("s").selectExpr("id AS unknown"), "counts")
