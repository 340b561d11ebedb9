"""Runs a reclustering for the kill tests: `killed_recluster.py HOME`, with the lake and the store below HOME."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.client import connect
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.model.statements import TransactionKey


def main(home: Path) -> None:
    from tidemark.testing import local_spark

    settings = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
    spark = local_spark(warehouse=home / "warehouse", more=settings)
    client = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home / "lake"))
    (kept,) = client.clustered_tables()
    (home / "ready").touch()
    recluster_table(client._context.runtime, kept, key=TransactionKey("dag", "run", "keep"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
