"""Refreshes of kept queries by changes against a refresh in full, and the way that AUTO takes.

    python -m tests.benchmarks.kept_views --scale 1 --shares 0.001,0.01,0.1 --rounds 3 [--queries Q1,Q3,join]

TPC-H data. For each share so many orders come and as many go, with their items. Every round writes a new kept table in
full as of before, and then refreshes it in both ways. CPU seconds are those of the whole process tree. Both ways must
give the answer of the query. `--warm-ups`: rounds before, whose last one has the seconds from which AUTO learns.

*AUTO first* chooses by bytes alone, and *AUTO* by what it has learned. Each has its *regret*: the CPU seconds of its
way by those of the better one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.benchmarks.change_sets import AS_IN_PRODUCTION, Run, medians, spent
from tests.engine.materialized.kept import Ends, Kept, same
from tests.engine.materialized.tpch import Tpch
from tests.unit.planning.tpch_queries import Q1, Q3, Q5, Q6, Q10, Q12, Q14
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.driver.job_resolve_query import resolve_query_in
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import KeptTable, Resolved, ResolveRequest
from tidemark.materialized.model.refreshes import Measured
from tidemark.materialized.planning.cost import BaseSize, Choice, Estimate, choose
from tidemark.model.statements import RefreshHow
from tidemark.model.streams import BaseWindow
from tidemark.testing import local_spark

JOIN = """
SELECT l_orderkey, l_linenumber, o_custkey, o_orderdate, l_quantity, l_extendedprice
FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE l_quantity > 10
"""
LATEST = "SELECT l_suppkey, max(l_shipdate) AS latest, min(l_extendedprice) AS least FROM lineitem GROUP BY l_suppkey"
SUMS = {"Q1": Q1, "Q3": Q3, "Q5": Q5, "Q6": Q6, "Q10": Q10, "Q12": Q12, "Q14": Q14, "latest": LATEST}
ROWS = {"join": JOIN}  # a dynamic table
MANY_FILES = 16


@dataclass(frozen=True)
class Compared:
    """The runs of both ways, and the choices by bytes alone and by seconds."""

    runs: dict[RefreshHow, list[Run]]
    first: Choice
    learned: Choice

    def row(self, name: str, share: float) -> str:
        (cpu, wall), (full, full_wall) = (medians(self.runs[way]) for way in self.runs)
        columns = [name, f"{share:.1%}", f"{cpu:.2f}", f"{wall:.2f}", f"{full:.2f}", f"{full_wall:.2f}"]
        columns += [f"{full / cpu:.1f}", f"{self.first.incremental_bytes or 0:,}", f"{self.first.full_bytes:,}"]
        for choice in (self.first, self.learned):
            taken = full if choice.how is RefreshHow.WHOLE else cpu
            columns += [choice.how.value, f"{taken / min(cpu, full):.2f}"]
        return f"| {' | '.join(columns)} |"


@dataclass
class Bench:
    """The tables, and kept tables in new directories."""

    spark: SparkSession
    tpch: Tpch
    workspace: Workspace
    made: int = 0

    def kept(self, name: str, before: Ends) -> Kept:
        """The query, kept in full as of `before`."""
        self.made += 1
        text = {**SUMS, **ROWS}[name]
        request = ResolveRequest(
            name=name,
            text=text,
            kind=KeptKind.MATERIALIZED_VIEW if name in SUMS else KeptKind.DYNAMIC_TABLE,
            tables={table.name: table.ref.path for table in self.tpch.tables},
            kept=KeptTable(name, str(self.tpch.home / f"kept_{self.made}")),
        )
        found: Resolved = resolve_query_in(self.spark, request)
        kept = Kept(self.spark, self.workspace, self.tpch.tables, text, found)
        kept.refresh(kept.window(before, before, initial=True), RefreshHow.WHOLE)
        return kept

    def measured(self, name: str, before: Ends, after: Ends, rounds: int, warm_ups: int) -> Compared:
        """The runs of both ways, after some that warm up, and what AUTO would choose."""
        runs: dict[RefreshHow, list[Run]] = {RefreshHow.CHANGES: [], RefreshHow.WHOLE: []}
        for number in range(warm_ups + rounds):
            kept = self.kept(name, before)
            window = kept.window(before, after)
            asked = estimated(kept, window.bases)
            for way in runs:
                runs[way].append(spent(lambda kept=kept, window=window, way=way: _answer(kept.refresh(window, way))))
                if number == warm_ups + rounds - 1:
                    assert same(kept.rows(), kept.answer(after)), (name, way)
        first = choose(asked)
        bytes_of = {RefreshHow.CHANGES: first.incremental_bytes or 0, RefreshHow.WHOLE: first.full_bytes}
        earlier = [Measured(way, bytes_of[way], found[warm_ups - 1].wall) for way, found in runs.items()]
        return Compared({way: found[warm_ups:] for way, found in runs.items()}, first, choose(asked, earlier))


def _answer(_: Any) -> tuple[tuple[object, ...], ...]:
    return ()


def estimated(kept: Kept, windows: tuple[BaseWindow, ...]) -> Estimate:
    """The sizes in the logs, as the worker reads them."""
    bases = []
    for window in windows:
        log = DeltaLog.open(window.table.path)
        files = [file for commit in log.commits(window.start, window.end) for file in (*commit.adds, *commit.removes)]
        changed = sum(file.size or 0 for file in files if file.data_change)
        columns = tuple(log.state(window.end).metadata.schema_json.split('"name":"')[1:])
        names = tuple(column.partition('"')[0] for column in columns)
        bases.append(BaseSize(changed, live_bytes(log, window.end), names))
    log = DeltaLog.open(kept.path)
    return Estimate(kept.shape, tuple(bases), live_bytes(log, log.head()))


def live_bytes(log: DeltaLog, version: int) -> int:
    live: dict[str, int] = {}
    for commit in log.commits(-1, version):
        for removed in commit.removes:
            live.pop(removed.path, None)
        live.update((added.path, added.size) for added in commit.adds)
    return sum(live.values())


def lines(bench: Bench, names: list[str], shares: list[float], rounds: int, warm_ups: int) -> Iterator[str]:
    for share in shares:
        before = bench.tpch.versions()
        bench.tpch.come(share)
        bench.tpch.go(share)
        after = bench.tpch.versions()
        for name in names:
            yield bench.measured(name, before, after, rounds, warm_ups).row(name, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--shares", default="0.001,0.01,0.1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument("--queries", default=",".join([*SUMS, *ROWS]))
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    shares = [float(share) for share in given.shares.split(",")]
    with nullcontext(given.home) if given.home else tempfile.TemporaryDirectory() as place:
        home = Path(place)
        spark = local_spark(warehouse=home / "warehouse", memory="8g", more=AS_IN_PRODUCTION)
        tpch = Tpch(spark, home, given.scale, held=sum(shares), files=MANY_FILES)
        print(
            "| query | changed | CPU s | wall s | full: CPU s | wall s | ratio | changes | full"
            " | AUTO first | regret | AUTO | regret |"
        )
        print("| --- " * 13 + "|")
        with Workspace(f"file://{home}/_tidemark", "benchmark") as workspace:
            bench = Bench(spark, tpch, workspace)
            for line in lines(bench, given.queries.split(","), shares, given.rounds, max(1, given.warm_ups)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
