"""R23, R41: consumers that run at the same time, a writer going on meanwhile, get disjoint windows without a gap."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tidemark.control.store import utc_now
from tidemark.errors import StreamLocked
from tidemark.transactions.outcomes import Consumed

from .world import World

COMMITS = 30


def test_consumers_at_the_same_time_get_disjoint_windows(tmp_path: Path) -> None:
    world = World(tmp_path, f"sqlite:///{tmp_path}/control.db", clock=utc_now)  # type: ignore[arg-type]
    world.stream()
    consumed: list[Consumed] = []
    locked = threading.Event()

    def write() -> None:
        for _ in range(COMMITS):
            world.source.append()
            time.sleep(0.01)

    def consume(consumer: int) -> None:
        run = 0
        while world.offset() < COMMITS:
            try:
                consumed.append(world.consume(f"{consumer}.{run}"))
                run += 1
            except StreamLocked:
                locked.set()
                time.sleep(0.01)

    threads = [threading.Thread(target=write), *(threading.Thread(target=consume, args=(n,)) for n in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert world.holds(0) == world.holds(1) == dict.fromkeys(range(1, COMMITS + 1), 1)
    windows = sorted((w.from_version, w.to_version) for c in consumed for w in c.result.windows if c.result.evidence)
    assert [start for start, _ in windows] == [0, *(end for _, end in windows[:-1])]
    assert windows[-1][1] == COMMITS
    assert locked.is_set()
