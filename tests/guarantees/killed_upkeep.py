"""Runs an upkeep for the kill tests: `killed_upkeep.py HOME`, with the lake and the store below HOME."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.client import connect
from tidemark.model.statements import TransactionKey
from tidemark.search.worker.upkeep import keep_search

FILES_PER_COMMIT = 3  # of the table that the test makes


def main(home: Path) -> None:
    from tidemark.testing import local_spark

    settings = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
    spark = local_spark(warehouse=home / "warehouse", more=settings)
    client = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home / "lake"))
    search = client.search_optimization("shop.orders")
    files = client.table_search.newest(search.table.path).files.values()
    most = FILES_PER_COMMIT * max(file.size for file in files)
    (home / "ready").touch()
    runtime = client._context.runtime
    keep_search(runtime, search.table.path, "shop.orders", key=TransactionKey("dag", "run", "keep"), most_bytes=most)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
