"""Consumes in other forms than one table's stream, for the kill tests: `killed_client.py HOME FORM:POINT… [--kill]`.

A client of its own: Spark, transactions and writes in one process. Each FORM:POINT has streams and targets of its own
and keys that are the same every time. With `--kill` the process ends at POINT, in the step that the form names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.failpoints import KILL_AT
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.replay import find_run, replay
from tidemark.testing import local_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = "customers_in_cities"


@dataclass(frozen=True)
class Case:
    """A form of consumption that is killed at a point; its streams and tables bear the name of both."""

    home: Path
    form: str
    point: str

    @property
    def name(self) -> str:
        return f"{self.form}_{self.point.replace('.', '_')}"

    def path(self, kind: str) -> str:
        return f"{self.home}/{kind}_{self.name}"


Step = Callable[[Lake, Case], None]


def make_view(spark: SparkSession, home: Path) -> None:
    """The view, the same for every process: a catalog in memory forgets it."""
    customers, cities = (f"delta.`{home}/{name}`" for name in ("customers", "cities"))
    query = f"SELECT u.id, u.name, c.city FROM {customers} u JOIN {cities} c ON u.id = c.id"
    spark.sql(f"CREATE OR REPLACE VIEW {VIEW} AS {query}")


def merged(case: Case, stream: str, kind: str = "mirror") -> PlannedWrite:
    path = case.path(kind)
    return PlannedWrite(WriteAs.MERGE, path, source=stream, keys=("id",), tables={path: f"file://{path}"})


def inserted(case: Case, select: str, kind: str = "history") -> PlannedWrite:
    target, path = f"delta.`{case.path(kind)}`", case.path(kind)
    return PlannedWrite(WriteAs.SQL, target, sql=f"INSERT INTO {target} {select}", tables={target: f"file://{path}"})


def take(lake: Lake, case: Case, run: str, streams: list[str], writes: list[PlannedWrite], bound: Bound) -> None:
    context = lake._context
    consume(
        context.runtime,
        key=TransactionKey("killed", f"{run}_{case.name}", "deliver"),
        streams=streams,
        writes=writes,
        owner="killed client",
        bound=bound,
    )


def take_view(lake: Lake, case: Case, *, run: str = "one", bound: Bound = UNBOUNDED) -> None:
    stream = f"s_{case.name}"
    select = f"SELECT id, name, city, `METADATA$ACTION` FROM {stream}"
    take(lake, case, run, [stream], [merged(case, stream), inserted(case, select)], bound)


def take_several(lake: Lake, case: Case) -> None:
    """Two streams move together; one statement reads both."""
    first, second = f"s_{case.name}", f"c_{case.name}"
    parts = (
        f"SELECT id, name, CAST(NULL AS STRING), `METADATA$ACTION` FROM {first}",
        f"SELECT id, CAST(NULL AS STRING), city, `METADATA$ACTION` FROM {second}",
    )
    take(
        lake, case, "one", [first, second], [merged(case, first), inserted(case, " UNION ALL ".join(parts))], UNBOUNDED
    )


def part_of_view(number: int) -> Step:
    """The n-th window of two commits at most."""
    return lambda lake, case: take_view(lake, case, run=f"part{number}", bound=Bound(max_commits=2))


def replay_view(lake: Lake, case: Case) -> None:
    """What `one` took goes into two other tables."""
    context, stream = lake._context, f"s_{case.name}"
    select = f"SELECT id, name, city, `METADATA$ACTION` FROM {stream}"
    replay(
        context.runtime,
        find_run(context.store, stream, f"one_{case.name}"),
        key=TransactionKey("killed", f"again_{case.name}", "replay"),
        writes=[merged(case, stream, "mirror_again"), inserted(case, select, "history_again")],
        owner="killed client",
    )


STEPS: dict[str, tuple[Step, ...]] = {
    "view": (take_view,),
    "several": (take_several,),
    "bounded": (part_of_view(1), part_of_view(2), part_of_view(3)),
    "replay": (take_view, replay_view),
}
KILLED_STEP = {"view": 0, "several": 0, "bounded": 1, "replay": 1}


def cases(home: Path, names: list[str]) -> Iterator[Case]:
    for name in names:
        form, point = name.split(":")
        yield Case(home, form, point)


def main(home: Path, names: list[str], *, kill: bool) -> None:
    spark = local_spark(warehouse=home / "warehouse")
    make_view(spark, home)
    lake = connect(spark, f"sqlite:///{home}/control.db", lake_root=str(home))
    for case in cases(home, names):
        for number, step in enumerate(STEPS[case.form]):
            if kill and number == KILLED_STEP[case.form]:
                os.environ[KILL_AT] = case.point
            step(lake, case)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [name for name in sys.argv[2:] if name != "--kill"], kill="--kill" in sys.argv)
