"""Merges a stream with a quarantine, for the kill test: `killed_quarantine.py HOME POINT [--kill]`.

The key of each POINT is the same every time; with `--kill` the process ends there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tidemark.client import connect
from tidemark.client.quarantine import make_quarantine
from tidemark.delivery.planning.quarantine import with_quarantine
from tidemark.failpoints import KILL_AT
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.streams.worker.consume import consume
from tidemark.testing import local_spark


def name_of(point: str) -> str:
    return point.replace(".", "_")


def main(home: Path, points: list[str], *, kill: bool) -> None:
    spark = local_spark(warehouse=home / "warehouse")
    lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home))
    context = lake._context
    for point in points:
        target, bad = f"{home}/target_{name_of(point)}", f"{home}/bad"
        write = PlannedWrite(
            WriteAs.MERGE, target, source=f"s_{name_of(point)}", keys=("id",), tables={target: target}, quarantine=bad
        )
        writes = with_quarantine(write, make_quarantine(context, bad))
        if kill:
            os.environ[KILL_AT] = point
        consume(
            context.runtime,
            key=TransactionKey("killed", point, "deliver"),
            streams=(f"s_{name_of(point)}",),
            writes=writes,
            owner="killed client",
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [point for point in sys.argv[2:] if point != "--kill"], kill="--kill" in sys.argv)
