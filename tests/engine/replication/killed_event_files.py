"""A DAG run's steps on event files, for the kill tests: `killed_event_files.py HOME`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.databases.event_files.dropped import address_of
from tests.engine.replication.landed_world import LandedWorld
from tidemark.testing import local_spark


def main(home: Path) -> None:
    spark = local_spark(warehouse=home, cores=1)
    LandedWorld(spark, home, address=address_of(home / "files"), max_events=40).turn()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
