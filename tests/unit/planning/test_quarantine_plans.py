"""A write with a quarantine is two statements; which table can be one; which constraints can be foretold."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest

from tidemark.delivery.model.marks import Mark, MarkKind, parse_changes, parse_mark, parse_split
from tidemark.delivery.model.quarantine import QUARANTINE_COLUMNS, Split
from tidemark.delivery.model.transactions import CommitResult
from tidemark.delivery.planning.constraints import check_texts
from tidemark.delivery.planning.quarantine import quarantine_problem
from tidemark.errors import InvalidArgument
from tidemark.model.codec import from_json, to_json, to_plain
from tidemark.model.statements import Evidence, PlannedWrite, TransactionKey, WriteAs
from tidemark.operators._plans import WriteRequest, planned_writes

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FIELDS = [
    {
        "name": name,
        "type": {"array<string>": {"type": "array", "elementType": "string"}, "bigint": "long"}.get(kind, kind),
    }
    for name, kind in QUARANTINE_COLUMNS.items()
]


def planned(**given: object) -> tuple[PlannedWrite, ...]:
    asked = {"stream": "s", "target": "a.b", "write_as": "append", **given}
    return planned_writes(WriteRequest.parse(asked), lambda name: f"file:///{name}")


def test_the_quarantine_is_the_statement_behind_its_targets() -> None:
    target, quarantine = planned(quarantine="a.bad", write_as="merge", keys="id")
    assert (target.write_as, target.target, target.quarantine) == (WriteAs.MERGE, "a.b", "a.bad")
    assert (quarantine.write_as, quarantine.target, quarantine.source) == (WriteAs.QUARANTINE, "a.bad", "s")
    assert quarantine.tables == {"a.bad": "file:///a.bad"}
    assert len({target.digest, quarantine.digest, planned(write_as="merge", keys="id")[0].digest}) == 3


@pytest.mark.parametrize("nothing", [None, "", "None"])
def test_a_template_may_render_to_no_quarantine(nothing: str | None) -> None:
    assert planned(quarantine=nothing) == planned()


@pytest.mark.parametrize(
    "wrong",
    [
        {"write_as": "sql", "sql": "INSERT INTO a.b SELECT * FROM s"},
        {"write_as": "module:function"},
        {"quarantine": ["a.bad", "a.worse"]},
        {"write_as": "quarantine"},
    ],
)
def test_only_appends_and_merges_have_one(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        planned(**{"quarantine": "a.bad", **wrong})


def test_a_write_without_one_has_the_digest_that_it_had_before_there_were_any() -> None:
    (write,) = planned()
    before = {name: value for name, value in to_plain(write).items() if name not in ("quarantine", "refresh")}
    assert write.digest == hashlib.sha256(to_json(before).encode()).hexdigest()
    assert from_json(PlannedWrite, json.dumps(before)) == write


def test_what_sorted_the_rows_stands_beside_the_mark_and_changes_it_not() -> None:
    mark = Mark("store", (), 1, "digest", "app", 7, MarkKind.WRITE)
    text = mark.to_text(Split(3, AT))
    assert (parse_mark(text), parse_split(text)) == (mark, Split(3, AT))
    assert (parse_mark(mark.to_text()), parse_split(mark.to_text()), parse_split("by hand")) == (mark, None, None)
    assert (parse_changes(mark.to_text(changes=7)), parse_mark(mark.to_text(changes=7))) == (7, mark)
    for odd in (mark.to_text(), "by hand", None, '{"tidemark_changes": 7}', mark.to_text(changes=-1)):
        assert parse_changes(odd) is None


def test_rows_in_quarantine_are_counted_apart() -> None:
    evidence = (
        Evidence(1, "t", 1, 1, "d", {"inserted": 2, "updated": 1}),
        Evidence(2, "q", 1, 1, "d", {"quarantined": 4}),
    )
    result = CommitResult(TransactionKey("d", "r", "t"), (), 1, evidence, AT)
    assert (result.rows, result.quarantined) == (3, 4)


def schema(*fields: dict[str, object]) -> str:
    return json.dumps({"type": "struct", "fields": [{"nullable": True, "metadata": {}, **field} for field in fields]})


def test_a_quarantine_has_its_columns_and_nothing_that_must_be_there() -> None:
    assert quarantine_problem(schema(*FIELDS, {"name": "id", "type": "long"})) is None
    assert "QUARANTINE$CONSTRAINTS array<string>" in str(quarantine_problem(schema(*FIELDS[1:])))
    assert "QUARANTINE$FROM bigint" in str(
        quarantine_problem(schema(*FIELDS, {"name": "quarantine$from", "type": "string"}))
    )
    assert "NOT NULL column id" in str(
        quarantine_problem(schema(*FIELDS, {"name": "id", "type": "long", "nullable": False}))
    )


def test_a_constraint_means_the_time_of_the_split_and_chance_is_not_foretold() -> None:
    found = check_texts(
        {
            "delta.constraints.b": "v  >  0 AND s.x < 1",
            "delta.constraints.a": "t < current_timestamp ( )",
            "delta.constraints.c": "rand ( ) < v",
            "delta.constraints.d": "v ~~ wrong ((",
            "delta.appendOnly": "true",
        },
        AT,
    )
    a, b, d = found
    assert (a.name, a.sql.upper()) == ("a", "T < TIMESTAMP_MICROS(1767323045000000)")
    assert (b.sql, b.names) == ("v  >  0 AND s.x < 1", frozenset({"v", "s", "x"}))
    assert (d.sql, d.names) == ("v ~~ wrong ((", None)
