"""Runs of a replication of a MariaDB or MySQL, one after another, until a kill: `oltp_replication.py HOME KIND PORT
DATABASE`.

`HOME/run.txt` names the run under way. A process that comes after a killed one begins with that run, as a retry does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.databases.mariadb import BinlogServer
from tests.guarantees.binlog_world import BinlogWorld
from tests.guarantees.loaded_replication import run_under_way
from tidemark.model.source_address import SourceKind
from tidemark.model.spark import DELTA_PACKAGE, MARIADB_PACKAGE
from tidemark.testing import local_spark


def main(home: Path, kind: str, port: int, database: str) -> None:
    server = BinlogServer(SourceKind(kind), home, port, ())
    packages = {"spark.jars.packages": f"{DELTA_PACKAGE},{MARIADB_PACKAGE}"}
    world = BinlogWorld(local_spark(warehouse=home, cores=2, more=packages), server, home, database=database)
    number = run_under_way(home)
    while True:
        (home / "run.txt").write_text(str(number))
        world.turn_together(f"run {number}")
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
