"""The warm Spark of a benchmark's Airflow home."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from tidemark.warm_spark.home import living_servers

__all__ = ["server_cpu"]


def server_cpu(home: Path) -> float:
    """CPU seconds of its servers so far, with their keepers."""
    total = 0.0
    for record, _ in living_servers(home / f"tidemark-jobs-{os.getuid()}" / "spark"):
        leader = psutil.Process(record.process_id)
        for process in (leader, *leader.children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system
    return total
