"""A plan that changed is told by the argument that differs, old → new, and by the table that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.model.statements import PlannedWrite, SchemaEvolution, WriteAs
from tidemark.streams.planning.plan_differences import differences

MERGE = PlannedWrite(WriteAs.MERGE, "shop.mirror", source="s", keys=("order_id",), tables={"shop.mirror": "/a"})
SQL = PlannedWrite(WriteAs.SQL, "shop.log", sql="INSERT INTO shop.log SELECT idd FROM s")
SORTED = replace(MERGE, quarantine="shop.bad")
BAD = PlannedWrite(WriteAs.QUARANTINE, "shop.bad", source="s")
LONG = f"INSERT INTO shop.log SELECT {', '.join(f'c{n}' for n in range(50))}, idd, x FROM s WHERE x IS NOT NULL"


@pytest.mark.parametrize(
    ("stored", "asked", "said"),
    [
        ([MERGE], [MERGE], ""),
        ([MERGE], [replace(MERGE, keys=("id",))], "keys of shop.mirror: order_id → id"),
        ([MERGE], [replace(MERGE, keys=("id", "day"))], "keys of shop.mirror: order_id → id, day"),
        ([MERGE], [replace(MERGE, keys=())], "keys of shop.mirror: order_id → none"),
        ([MERGE], [replace(MERGE, write_as=WriteAs.APPEND)], "write_as of shop.mirror: merge → append"),
        ([MERGE], [replace(MERGE, target="shop.copy")], "target of shop.mirror: shop.mirror → shop.copy"),
        ([MERGE], [replace(MERGE, source="t")], "stream of shop.mirror: s → t"),
        (
            [MERGE],
            [replace(MERGE, schema_evolution=SchemaEvolution.ADD)],
            "schema_evolution of shop.mirror: fail → add",
        ),
        ([MERGE], [replace(MERGE, tables={"shop.mirror": "/b"})], "place of shop.mirror: /a → /b"),
        ([MERGE], [SORTED, BAD], "quarantine of shop.mirror: none → shop.bad"),
        ([SORTED, BAD], [SORTED, replace(BAD, target="shop.bad")], ""),
        ([MERGE, SQL], [MERGE], "the write into shop.log is gone"),
        ([MERGE], [MERGE, SQL], "the write into shop.log is new"),
        (
            [SQL],
            [replace(SQL, sql="INSERT INTO shop.log\nSELECT id FROM s")],
            "sql of shop.log: INSERT INTO shop.log SELECT idd FROM s → INSERT INTO shop.log SELECT id FROM s",
        ),
    ],
)
def test_the_argument_is_named_with_its_table(stored: list[PlannedWrite], asked: list[PlannedWrite], said: str) -> None:
    assert differences(stored, asked) == said


def test_of_long_texts_only_the_place_is_shown_where_they_part() -> None:
    said = differences([replace(SQL, sql=LONG)], [replace(SQL, sql=LONG.replace("idd", "id"))])
    assert said.count("…") == 2
    assert len(said) < 200
    assert "idd, x FROM s" in said.split(" → ")[0]
    assert "id, x FROM s" in said.split(" → ")[1]


def test_a_text_that_only_goes_on_shows_its_end() -> None:
    said = differences([replace(SQL, sql=LONG)], [replace(SQL, sql=LONG + " AND y")])
    assert said.endswith("AND y")


def test_streams_are_compared_without_order_and_case() -> None:
    assert differences([SQL], [SQL], stored_streams=("a", "B"), requested_streams=("b", "A")) == ""
    assert differences([SQL], [SQL], stored_streams=("a",), requested_streams=("a", "b")) == "streams: a → a, b"
