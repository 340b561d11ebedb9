"""In which order files of tests run, and which worker takes them.

A Spark needs minutes of CPU until its code is warm, so no more than two workers start one. A test that waits leaves a
core idle, so a third worker takes what needs no Spark of its process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["RANKS_TO", "Files", "rank_files"]

RANKS_TO = "ranks_to"  # the key of a worker's input: the process that hands files out collects none itself
WITHOUT_SPARK, OTHER_PROCESSES = 2, 3
SPREAD = (
    "tests/properties/test_histories.py",
    "tests/guarantees/test_replication_random.py",
)  # their tests share nothing and are long


def rank_files(items: Sequence[pytest.Item]) -> dict[str, int]:
    """The least rank of each file's tests. 0: a Spark in this process; 1: that, and processes of its own; 2: neither;
    3: other processes alone.
    """
    ranks: dict[str, int] = {}
    for item in items:
        file = _file_of(item.nodeid)
        ranks[file] = min(_rank(item), ranks.get(file, OTHER_PROCESSES))
    return ranks


def _rank(item: pytest.Item) -> int:
    with_spark, with_others = "spark" in getattr(item, "fixturenames", ()), bool(item.get_closest_marker("e2e"))
    if with_spark:
        return 1 if with_others else 0
    return OTHER_PROCESSES if with_others else WITHOUT_SPARK


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class Files(LoadFileScheduling):
    """The tests of a file stay on one worker, as what they share does; those of SPREAD go where there is time.

    Files come in the order of their ranks. The first worker takes them from the front. The second takes the last one
    with Spark, or, if it is the only other one, the last of all. Further ones take the last of all while it needs no
    Spark, then end.
    """

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return nodeid if file.endswith(SPREAD) else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next_for(node)
        if scope is None:
            node.shutdown()  # when it has done what it has
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _next_for(self, node: WorkerController) -> str | None:
        """What the worker is to do next; None: nothing that is left."""
        first, *_ = self.workqueue
        last = next(reversed(self.workqueue))
        place = self._places.get(node.gateway.id, 1)  # 1: it stands in for one that died
        if place == 0:
            return first
        if place == 1:
            with_spark = [scope for scope in self.workqueue if self._needs_spark(scope)]
            return with_spark[-1] if with_spark and len(self._places) > 2 else last
        return None if self._needs_spark(last) else last

    def _needs_spark(self, scope: str) -> bool:
        return self._ranks[_file_of(scope)] < WITHOUT_SPARK

    def schedule(self) -> None:
        """As every scheduler; what files need is known now, and who is there."""
        if self.collection is None:
            self._places = {node.gateway.id: place for place, node in enumerate(self.nodes)}
            ranks_to = Path(next(iter(self.nodes)).workerinput[RANKS_TO])
            found = ranks_to.exists()  # not if a path was misspelled, and nothing is collected
            self._ranks: dict[str, int] = json.loads(ranks_to.read_text()) if found else {}
        super().schedule()
