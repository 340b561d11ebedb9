"""What `make demo-replication` judges by: the state of a table at a position, told by the source's own journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.postgresql import PASSWORD, USER, PostgresServer

sys.path.append(str(Path(__file__).parents[2] / "dags"))

from replication.compare import TABLES, rows_of_target
from replication.demo import Telling
from replication.postgresql.journal import compare
from replication.postgresql.shop import fill, make_shop
from replication.postgresql.writer import Writer
from replication.target import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def connections(source_server: PostgresServer) -> Iterator[tuple[Any, Any]]:
    """Two autocommit connections to a new shop."""
    import psycopg2

    database = source_server.new_database()
    at = {"host": "127.0.0.1", "port": source_server.port, "user": USER, "password": PASSWORD, "dbname": database}
    opened = [psycopg2.connect(**at) for _ in range(2)]
    for connection in opened:
        connection.autocommit = True
    make_shop(opened[0])
    fill(opened[0], orders=50)
    yield opened[0], opened[1]
    for connection in opened:
        connection.close()


def test_a_past_state_is_told_exactly_though_the_writer_has_gone_on(connections: tuple[Any, Any]) -> None:
    connection, writing = connections
    writer = Writer(writing, seed=3)
    for _ in range(120):
        writer.step()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_flush_lsn()")
        (position,) = cursor.fetchone()
        then = {}
        for table in TABLES:
            cursor.execute(f"SELECT * FROM shop.{table}")
            names = [column[0] for column in cursor.description]
            then[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for _ in range(60):
        writer.step()
    for table, rows in then.items():
        told = compare(connection, table, position, rows)
        assert (told.differs, told.source, told.target) == (0, len(rows), len(rows))
        assert compare(connection, table, position, rows[1:]).differs == 1
        changed = [{**rows[0], next(iter(rows[0])): None}, *rows[1:]]
        assert compare(connection, table, position, changed).differs == 2


def test_a_log_of_rows_has_those_that_came_and_did_not_go() -> None:
    row = {"at": None, "customer_id": 1, "page": "/", "took_ms": 3}
    came, went = {**row, "is_deleted": False}, {**row, "is_deleted": True}
    assert list(rows_of_target("visits", [came, came, went])) == [row]


def test_tasks_progress_and_errors_are_shown_and_the_rest_is_not() -> None:
    def told(**entry: Any) -> list[str]:
        return [line.strip() for line in Telling().lines(entry)]

    begins = told(event="[DAG TEST] starting task_id=replicate.objects.backfill map_index=2")[0]
    assert begins.endswith("s] objects.backfill 2")
    operator = "tidemark.operators.replication_objects.BackfillObjectOperator"
    assert told(event="shop.orders: 3 rows", logger=operator) == ["shop.orders: 3 rows"]
    assert told(event="Task started", level="info", filename="dag.py") == []
    raised = [{"exc_type": "SlotLost", "exc_value": "it is gone"}]
    assert told(event="Task failed", level="error", exception=raised) == ["Task failed. SlotLost: it is gone"]


@pytest.mark.spark
def test_a_target_is_read_without_spark_also_where_rows_of_its_files_are_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = f"delta.`{tmp_path}`"
    spark.sql(f"CREATE TABLE {made} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.range(20).selectExpr("CAST(id AS INT) id").coalesce(1).write.format("delta").mode("append").save(
        str(tmp_path)
    )
    spark.sql(f"DELETE FROM {made} WHERE id % 3 = 0")
    assert list(tmp_path.rglob("deletion_vector*")), "nothing to show"
    assert sorted(row["id"] for row in read_rows(tmp_path, ["id"])) == [number for number in range(20) if number % 3]
