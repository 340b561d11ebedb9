"""A DAG run's steps of a replication in one process, for the kill tests: `killed_replication.py HOME PORT
DATABASE TABLE…`.

Spark, store and targets are at HOME as the test left them. With TIDEMARK_KILL_AT the process ends at that point.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.guarantees.replication_tables import source_tables
from tests.guarantees.replication_world import ReplicationWorld
from tests.postgresql import PASSWORD, USER
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.model.spark import DELTA_PACKAGE, POSTGRESQL_PACKAGE
from tidemark.testing import local_spark

TABLES = ("orders", "lines", "visits")
RUN = "killed"


def main(home: Path, port: int, database: str, names: Sequence[str]) -> None:
    address = SourceAddress(SourceKind.POSTGRESQL, "127.0.0.1", port, database, USER, PASSWORD)
    tables = [table for table in source_tables() if table.name in names]
    packages = {"spark.jars.packages": f"{DELTA_PACKAGE},{POSTGRESQL_PACKAGE}"}
    world = ReplicationWorld(local_spark(warehouse=home, cores=1, more=packages), address, tables, home)
    world.turn(RUN)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
