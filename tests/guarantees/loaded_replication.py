"""Runs of a replication, one after another, until a kill: `loaded_replication.py HOME PORT DATABASE LOAD`.

`HOME/run.txt` names the run under way. A process that comes after a killed one begins with that run, as a retry does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.guarantees.replication_loads import LOADS
from tests.guarantees.replication_world import ReplicationWorld
from tests.postgresql import PASSWORD, USER
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.model.spark import DELTA_PACKAGE, POSTGRESQL_PACKAGE
from tidemark.testing import local_spark

__all__ = ["run_under_way"]


def run_under_way(home: Path) -> int:
    """The number of the run that a process began last."""
    file = home / "run.txt"
    return int(file.read_text()) if file.exists() else 0


def main(home: Path, port: int, database: str, load: str) -> None:
    address = SourceAddress(SourceKind.POSTGRESQL, "127.0.0.1", port, database, USER, PASSWORD)
    packages = {"spark.jars.packages": f"{DELTA_PACKAGE},{POSTGRESQL_PACKAGE}"}
    world = ReplicationWorld(local_spark(warehouse=home, cores=2, more=packages), address, LOADS[load].tables, home)
    number = run_under_way(home)
    while True:
        (home / "run.txt").write_text(str(number))
        world.turn(f"run {number}")
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
