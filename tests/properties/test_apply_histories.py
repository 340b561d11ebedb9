"""Random histories of a table, told as events and applied, leave what the table had: judged row by row.

Two hundred histories share a target and a log, a history being a part of each key and of each position, so that the
n-th segments of all of them are one write.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.databases.postgresql.event_log import EVENT_COLUMNS, EVENT_DDL
from tests.engine.replication.event_histories import (
    STORE,
    SourceTable,
    apply_events_of,
    column,
    schema_of,
    write_events,
)
from tests.tiers import some
from tidemark.replication.driver.fold import Folding
from tidemark.replication.driver.object_events import ObjectEvents
from tidemark.replication.driver.segments import merge_rows
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.replication import LogPosition, TypeKind, WriteMode
from tidemark.replication.planning.barriers import Barrier, Segment, SegmentKind, plan_segments

pytestmark = pytest.mark.spark

CASES = 220
MOST_TRANSACTIONS = 8
SCHEMA = schema_of(
    column("case", TypeKind.INTEGER, key=True),
    column("id", TypeKind.INTEGER, key=True),
    column("note"),
    column("big"),
    column("bigger"),
)
Rows = dict[tuple[int, int], tuple[str | None, str | None, str | None]]


@dataclass
class History:
    """A random table: what it was at `start`, what happened then."""

    number: int
    table: SourceTable
    start: LogPosition
    before: Rows


def _history(number: int, dice: random.Random) -> History:
    table = SourceTable(SCHEMA, prefix=f"{number:04d}")
    for key in range(dice.randint(0, 4)):
        table.insert(**_row(number, key, dice))
    start, before = table.now, _rows(table)
    for _ in range(dice.randint(1, MOST_TRANSACTIONS)):
        with table.transaction():
            for _ in range(dice.randint(1, 4)):
                _change(number, table, dice)
    return History(number, table, start, before)


def _row(number: int, key: int, dice: random.Random) -> dict[str, str | None]:
    return {"case": str(number), "id": str(key), **{name: _text(dice) for name in ("note", "big", "bigger")}}


def _text(dice: random.Random) -> str | None:
    return None if dice.random() < 0.1 else f"t{dice.randrange(10**6)}"


def _change(number: int, table: SourceTable, dice: random.Random) -> None:
    taken, case = list(table.rows), str(number)
    free = [key for key in range(5) if (case, str(key)) not in table.rows]
    what = dice.random()
    if what < 0.02:
        table.truncate()
    elif not taken or (free and what < 0.2):
        table.insert(**_row(number, dice.choice(free), dice))
    elif what < 0.35:
        table.delete(*dice.choice(taken))
    else:
        left_out = [name for name in ("big", "bigger") if dice.random() < 0.6]
        changes = {name: _text(dice) for name in ("note", "big", "bigger") if name not in left_out}
        if free and what > 0.6:
            changes["id"] = str(dice.choice(free))
        table.update(dice.choice(taken), unchanged=left_out, whole=not left_out, **changes)


def _rows(table: SourceTable) -> Rows:
    return {
        (int(row["case"] or 0), int(row["id"] or 0)): (row["note"], row["big"], row["bigger"])
        for row in table.rows.values()
    }


def _steps(histories: list[History], barriers: list[Barrier]) -> list[list[tuple[History, Segment]]]:
    by_case: dict[str, list[Barrier]] = defaultdict(list)
    for barrier in barriers:
        by_case[barrier.at.commit[:4]].append(barrier)
    steps: list[list[tuple[History, Segment]]] = []
    for one in histories:
        plan = plan_segments(
            start=one.start,
            end=one.table.now,
            schema=SCHEMA,
            mode=WriteMode.MERGE,
            barriers=by_case[one.table.prefix],
        )
        assert plan.end == one.table.now
        for place, segment in enumerate(plan.segments):
            steps.extend([] for _ in range(place + 1 - len(steps)))
            steps[place].append((one, segment))
    return steps


def _events_of(segments: list[tuple[History, Segment]]) -> list[tuple[object, ...]]:
    return [
        tuple(event.get(name) for name in EVENT_COLUMNS)
        for one, segment in segments
        for event in one.table.events
        if segment.start <= LogPosition(event["position"], event["sequence"]) < segment.end
    ]


@pytest.mark.parametrize("turn", some(range(20), now=(0,)))
@settings(max_examples=1, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(seed=st.integers(0, 2**32))
def test_applied_events_leave_the_rows_that_the_source_had(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, turn: int, seed: int
) -> None:
    home: Path = tmp_path_factory.mktemp("histories")
    histories = [_history(number, random.Random(f"{seed}/{number}")) for number in range(CASES)]
    write_events(spark, home / "log", [event for one in histories for event in one.table.events])
    request = apply_events_of(histories[0].table, target=home / "t", event_log=home / "log", schema=SCHEMA)
    target = Target(request.target, STORE, "o").make(spark, SCHEMA, WriteMode.MERGE, replication="shop")
    before = [(*key, *values, None) for one in histories for key, values in one.before.items()]
    spark.createDataFrame(before, spark.read.format("delta").load(str(home / "t")).schema).write.format("delta").mode(
        "append"
    ).save(str(home / "t"))
    events = ObjectEvents(spark, request, end=LogPosition("Z"))
    folding = Folding("shop.orders", SCHEMA, events.unchanged)
    widest = random.Random(seed).choice((0, 1 << 20))  # rows are kept for the merge, or computed twice

    for segments in _steps(histories, list(events.barriers())):
        emptied = [one.number for one, segment in segments if segment.kind is SegmentKind.TRUNCATE]
        if emptied:
            spark.sql(f"DELETE FROM {target.name} WHERE `case` IN ({', '.join(map(str, emptied))})")
        rows = [(one, segment) for one, segment in segments if segment.kind is SegmentKind.ROWS]
        if rows:
            frame = spark.createDataFrame(_events_of(rows), EVENT_DDL)
            merge_rows(spark, target, frame, folding, moves=events.moves, widest=widest)

    _require_same(spark, home, histories)


def _require_same(spark: SparkSession, home: Path, histories: list[History]) -> None:
    found: dict[int, Rows] = defaultdict(dict)
    twice: list[tuple[int, int]] = []
    for row in spark.read.format("delta").load(str(home / "t")).select("case", "id", "note", "big", "bigger").collect():
        if row[:2] in found[row["case"]]:
            twice.append(row[:2])
        found[row["case"]][row[:2]] = row[2:]
    assert not twice
    wrong = [one for one in histories if found[one.number] != _rows(one.table)]
    if wrong:
        one = min(wrong, key=lambda other: len(other.table.events))
        names = ("position", "sequence", "change", "payload", "old_key", "unchanged")
        lines = "\n".join(" ".join(str(event[name]) for name in names) for event in one.table.events)
        pytest.fail(f"{len(wrong)} wrong; {found[one.number]} and not {_rows(one.table)} after\n{lines}")
