"""A DAG run's steps on landed envelopes, for the kill tests: `killed_landed.py HOME`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.engine.replication.landed_world import LandedWorld
from tidemark.testing import local_spark


def main(home: Path) -> None:
    LandedWorld(local_spark(warehouse=home, cores=1), home, max_events=40).turn()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
