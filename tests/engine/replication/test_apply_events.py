"""An apply leaves in the target what the source has, each event once, whatever happens on the way."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.event_histories import (
    STORE,
    SourceTable,
    apply_events_of,
    column,
    schema_of,
    write_events,
)
from tests.tiers import some
from tidemark.errors import (
    ObjectFailed,
    ReplicationRefused,
    TargetLost,
    TargetMovedOn,
    ToastedKey,
    ValueDoesNotFit,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.model.jobs import ApplyEvents, ApplyReport
from tidemark.replication.model.marks import parse_object_mark
from tidemark.replication.model.replication import (
    InvalidValues,
    LogPosition,
    TableSchema,
    TypeKind,
    UnifiedType,
    WriteMode,
)

pytestmark = pytest.mark.spark

ODD = "Odd `name`, with.dots"
SCHEMA = schema_of(column("id", TypeKind.INTEGER, key=True), column(ODD), column("BIG"))


class World:
    """A table of a source, its event log, and its target."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home = spark, home
        self.table = SourceTable(SCHEMA)
        self._schema, self._told, self.number = SCHEMA, 0, 0
        self._start = LogPosition("")

    def request(self, **more: Any) -> ApplyEvents:
        """For everything since the last ask; its events are in the log."""
        write_events(self.spark, self.home / "log", self.table.events[self._told :])
        self._told, self.number = len(self.table.events), self.number + 1
        asked = apply_events_of(
            self.table,
            target=self.home / "t",
            event_log=self.home / "log",
            **{"schema": self._schema, "number": self.number, "start": self._start, **more},
        )
        self._schema, self._start = self.table.schema, asked.end
        return asked

    def run(self, request: ApplyEvents | None = None, **more: Any) -> ApplyReport:
        return apply_events(self.spark, STORE, self.request() if request is None else request, **more)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(str(self.home / "t"))

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(str(self.home / "t"))
        names = columns or tuple(one.name for one in self.table.schema.columns)
        return sorted(map(tuple, frame.select(*("`" + name.replace("`", "``") + "`" for name in names)).collect()))

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("{t}", f"delta.`{self.home / 't'}`"))


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def test_a_history_is_in_the_target_once_and_found_again(world: World) -> None:
    table = world.table
    with table.transaction():
        table.insert(**{"id": "1", ODD: "a", "BIG": "x" * 9})
        table.insert(**{"id": "2", ODD: "b", "BIG": None})
    table.update(["1"], unchanged=["BIG"], **{ODD: "c"})
    first = world.request()
    report = world.run(first)
    assert (report.applied, report.events, report.segments, report.found) == (table.now, 3, 1, 0)
    assert report.rows == {"inserted": 2, "updated": 0, "deleted": 0}
    assert report.newest_source_timestamp == table.events[-1]["source_timestamp"]
    assert world.rows() == [(1, "c", "x" * 9), (2, "b", None)]
    assert world.rows("datastream_metadata")[0][0].asDict() == {"uuid": "-1", "source_timestamp": 1767225601000}

    with table.transaction():
        table.update(["1"], unchanged=["BIG"], id="3")  # the value is in the target alone
        table.update(["2"], unchanged=["BIG"], **{ODD: "d"})
    table.truncate()
    table.insert(**{"id": "1", ODD: "new", "BIG": "y"})
    second = world.request()
    assert world.run(second, stop_after=1).applied < table.now
    assert world.rows() == [(2, "d", None), (3, "c", "x" * 9)]
    report = world.run(second)
    assert (report.applied, report.segments, report.found, report.events) == (table.now, 3, 1, 5)
    assert world.rows() == [(1, "new", "y")]
    assert report.rows == {"inserted": 2, "updated": 1, "deleted": 3}

    head = world.log.head()
    again = world.run(second)
    assert (again.found, again.rows, world.log.head()) == (3, report.rows, head)
    (commit,) = world.log.commits(head - 1, head)
    mark = parse_object_mark(commit.user_metadata)
    assert mark is not None
    assert (mark.number, mark.segment, mark.end, mark.kind.value) == (2, 3, table.now, "apply")
    with pytest.raises(TargetMovedOn):
        world.run(first)
    assert world.rows() == [(1, "new", "y")]
    world.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    with pytest.raises(TargetLost, match="restored or replaced after write 2"):
        world.run(second)


def test_files_of_the_target_that_can_have_none_of_the_keys_are_not_read(world: World) -> None:
    table = world.table
    table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    world.run()
    files = [*(world.home / "t").rglob("part-*.parquet")]
    table.insert(**{"id": "100", ODD: "b", "BIG": "y"})
    world.run()
    for file in files:
        file.unlink()  # whoever reads it fails
    table.update(["100"], unchanged=["BIG"], **{ODD: "c"})
    assert world.run().rows == {"inserted": 0, "updated": 1, "deleted": 0}


def test_marks_of_an_earlier_release_are_known_in_a_target(world: World) -> None:
    world.table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    first = world.request()
    report = world.run(first)
    for path in (world.home / "t" / "_delta_log").glob("*.json"):
        path.write_text(path.read_text().replace('kind\\":\\"apply', 'kind\\":\\"write_down'))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    assert "write_down" in str([commit.user_metadata for commit in world.log.commits(-1, world.log.head())])
    again = world.run(first)
    assert (again.found, again.rows, world.log.head()) == (1, report.rows, report.segments)
    world.table.update(["1"], **{ODD: "b", "BIG": "y"})
    world.run()
    assert world.rows() == [(1, "b", "y")]


class Died(Exception):
    """Stands for the end of the process."""


@pytest.mark.quick
def test_an_attempt_that_dies_anywhere_is_finished_by_the_next(world: World) -> None:
    table = world.table
    with table.transaction():
        table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
        table.insert(**{"id": "2", ODD: "b", "BIG": "y"})
    table.truncate()
    table.insert(**{"id": "1", ODD: "a", "BIG": "z"})
    request = world.request()

    def die(text: str = "") -> None:
        raise Died(text)

    with pytest.raises(Died):
        world.run(request, stop_if_due=die)  # before the first segment
    with pytest.raises(Died):
        world.run(request, say=die)  # behind it
    world.run(request, stop_after=2)
    with pytest.raises(Died):
        world.run(request, stop_if_due=die)  # before the last
    assert world.run(request).found == 2
    assert world.rows() == [(1, "a", "z")]
    marks = [parse_object_mark(commit.user_metadata) for commit in world.log.commits(-1, world.log.head())]
    assert [mark.segment for mark in marks if mark is not None] == [1, 2, 3]


@pytest.mark.parametrize("history", some(["short", "long"], now=["short"]))
def test_new_columns_come_with_what_rows_of_before_have(world: World, history: str) -> None:
    table = world.table
    first = schema_of(
        column("id", TypeKind.INTEGER, key=True, number=1),
        column(ODD, number=2),
        column("n", TypeKind.INTEGER, number=3),
    )
    table.schema = world._schema = first
    table.insert(**{"id": "1", ODD: "a", "n": "7"})
    table.insert(**{"id": "2", ODD: "b", "n": None})
    world.run()
    decimal = replace(column("d", number=5, filled="1.50"), type=UnifiedType(TypeKind.DECIMAL, 5, 2))
    second = schema_of(
        column("id", TypeKind.LONG, key=True, number=1),
        column("renamed", number=2),
        column("n", TypeKind.LONG, number=3),
        column("plain (no default)", number=4),
        decimal,
    )
    with table.transaction():
        table.insert(**{"id": "3", ODD: "c", "n": "8"})
        table.alter(second, renamed={"renamed": ODD})
        table.insert(**{"id": "4000000000", "renamed": "d", "n": "9", "plain (no default)": "p", "d": "2.25"})
    report = world.run()
    assert report.schema == second
    half = Decimal("1.50")
    assert world.rows() == [
        (1, "a", 7, None, half), (2, "b", None, None, half), (3, "c", 8, None, half),
        (4_000_000_000, "d", 9, "p", Decimal("2.25")),
    ]  # fmt: skip

    if history == "long":
        _drop_and_add(world, second)


def _drop_and_add(world: World, second: TableSchema) -> None:
    """A column that comes again under its name is another one."""
    table = world.table
    dropped = schema_of(*(one for one in second.columns if one.name != "n"))
    again = schema_of(*dropped.columns, column("n", TypeKind.LONG, number=6))
    table.alter(dropped)
    table.insert(**{"id": "5", "renamed": "e", "plain (no default)": None, "d": None})
    assert world.run().needs_backfill is None
    table.alter(again)
    world.run()
    assert [row[0] for row in world.rows("n")] == [None] * 5
    names = [field.name for field in world.spark.read.format("delta").load(str(world.home / "t")).schema.fields]
    assert names[:4] == ["id", "renamed", ODD, "n"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (column("n", TypeKind.STRING), "column n changed its type from integer to string"),
        (column("n", TypeKind.INTEGER, key=True), None),
        (None, "it no longer has a key"),
    ],
)
def test_what_only_a_backfill_can_tell_needs_one(world: World, change: Any, why: str | None) -> None:
    table = world.table
    table.schema = world._schema = schema_of(column("id", TypeKind.INTEGER, key=True), column("n", TypeKind.INTEGER))
    table.insert(id="1", n="1")
    before = table.now
    keyless = schema_of(column("id", TypeKind.INTEGER), column("n", TypeKind.INTEGER))
    table.alter(keyless if change is None else schema_of(column("id", TypeKind.INTEGER, key=True), change))
    if why is None:
        table.insert(id="1", n="2")  # the key is both now
    report = world.run()
    assert report.needs_backfill == why
    assert report.applied == (table.now if why is None else replace(before, sequence=1))
    assert world.rows("id") == ([(1,), (1,)] if why is None else [(1,)])


def test_a_value_that_does_not_fit_stops_before_its_segment_or_becomes_null(world: World) -> None:
    table = world.table
    table.schema = world._schema = schema_of(column("id", TypeKind.DATE, key=True), column("Until", TypeKind.DATE))
    table.insert(id="2024-01-01", Until=None)
    table.truncate()
    table.insert(id="2024-01-02", Until="infinity")
    request = world.request()
    with pytest.raises(ValueDoesNotFit) as refused:
        world.run(request)
    facts = refused.value.facts
    assert (facts["column"], facts["value"], facts["type"], facts["object"]) == (
        "Until",
        "infinity",
        "DATE",
        "shop.orders",
    )
    assert facts["position"] == f"{3:016X}/1"
    assert facts["applied"] == {"commit": f"{2:016X}", "sequence": 2}
    assert world.rows() == []
    world.run(replace(request, invalid_values=InvalidValues.NULL))
    assert [row[1] for row in world.rows()] == [None]

    table.insert(id="-infinity", Until=None)
    with pytest.raises(ValueDoesNotFit):  # a key that became NULL would be that of other rows
        world.run(replace(world.request(), invalid_values=InvalidValues.NULL))


def test_a_value_that_is_overwritten_in_time_harms_nobody(world: World) -> None:
    table = world.table
    table.schema = world._schema = schema_of(column("id", TypeKind.LONG, key=True), column("until", TypeKind.DATE))
    table.insert(id="1", until="infinity")
    table.update(["1"], until="2024-01-01")
    assert world.run().rows["inserted"] == 1


def test_a_row_whose_key_is_not_in_the_log_stops_the_apply(world: World) -> None:
    table = world.table
    table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    table.update_with_toasted_key()
    table.insert(**{"id": "2", ODD: "b", "BIG": "x"})
    with pytest.raises(ToastedKey) as refused:
        world.run()
    assert refused.value.facts["applied"] == {"commit": f"{2:016X}", "sequence": 1}
    assert world.rows("id") == [(1,)]


def test_an_update_of_a_row_that_the_target_lost_is_an_error(world: World) -> None:
    table = world.table
    table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    world.run()
    world.sql("DELETE FROM {t}")
    table.update(["1"], unchanged=["BIG"], **{ODD: "b"})
    with pytest.raises(ObjectFailed, match=r"no row of key \[\"1\"\]"):
        world.run()
    assert world.rows() == []


def test_an_append_only_target_has_a_row_for_every_event(world: World) -> None:
    table = world.table
    table.schema = world._schema = schema_of(column("v"), column("n", TypeKind.INTEGER))
    table.insert(v="a", n="1")
    table.delete("0")
    world.run(world.request(mode=WriteMode.APPEND_ONLY))
    wider = schema_of(column("v"), column("n", TypeKind.INTEGER), column("new", filled="x"))
    with table.transaction():
        table.alter(wider)
        table.insert(v="b", n="2", new="y")
    table.truncate()
    request = world.request(mode=WriteMode.APPEND_ONLY)
    world.run(request)
    head = world.log.head()
    assert world.run(request).found == 3  # with the two that needed no commit
    assert world.log.head() == head
    rows = world.rows("change_sequence_number", "change_type", "is_deleted", "v", "n", "new")
    assert [row[1:] for row in rows] == [
        ("INSERT", False, "a", 1, None),
        ("DELETE", True, "a", 1, None),
        ("INSERT", False, "b", 2, "y"),
        ("TRUNCATE", True, None, None, None),
    ]
    assert rows[2][0] == f"{3:016X}-{2:016X}"
    assert world.rows("sort_keys")[0] == (["1", "0/0", "1"],)


def test_events_of_another_table_of_the_same_folded_name_are_left_alone(world: World) -> None:
    other = SourceTable(SCHEMA, source_id="4712")
    other.insert(**{"id": "9", ODD: "other", "BIG": None})
    write_events(world.spark, world.home / "log", other.events)
    world.table.insert(**{"id": "1", ODD: "a", "BIG": None})
    world.run()
    assert world.rows("id") == [(1,)]


def test_a_range_without_events_writes_nothing(world: World) -> None:
    world.table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    world.run()
    head = world.log.head()
    assert world.run(replace(world.request(), end=LogPosition("F"))).events == 0
    assert world.log.head() == head


def test_a_table_with_rows_of_others_is_refused(world: World) -> None:
    world.spark.range(3).write.format("delta").save(str(world.home / "t"))
    world.table.insert(**{"id": "1", ODD: "a", "BIG": "x"})
    with pytest.raises(ReplicationRefused, match="rows that are not of this object"):
        world.run()
    assert world.rows("id") == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("change", "row", "problem"),
    [
        ("UPDATE", "a", "only one half.*Backfill the object"),  # as captures of an older release have left them
        ("DELETE", "b", "1 equal rows are to be deleted, and the target has 0"),
    ],
)
def test_a_mirror_without_a_key_stops_before_what_it_cannot_follow(
    world: World, change: str, row: str, problem: str
) -> None:
    world.table.schema = world._schema = schema_of(column("v"))
    world.table.insert(v="a")
    world.run()
    world.table._tell(change, {"v": row}, None)
    with pytest.raises(ObjectFailed, match=problem):
        world.run()
    assert world.rows("v") == [("a",)]
