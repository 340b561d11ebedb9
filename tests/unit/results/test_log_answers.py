"""Counts, least and greatest values from a log, and every reason not to take them from there."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tidemark.model.table_log import AddFile, DeletionVector, Metadata
from tidemark.results.planning.extrema import LogQuery, NotExact, answer_of, log_query
from tidemark.results.planning.queries import Query, read_query

TYPES = {
    "id": "long", "day": "date", "n": "decimal(20,2)", "name": "string", "x": "double", "at": "timestamp",
    "part": "integer", "tags": {"type": "array", "elementType": "string", "containsNull": True},
}  # fmt: skip
VECTOR = DeletionVector("u", "x", 1, 2)


def metadata(**physical: str) -> Metadata:
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": physical[name]} if name in physical else {},
        }
        for name, kind in TYPES.items()
    ]
    return Metadata("id", json.dumps({"type": "struct", "fields": fields}), ("part",), {})


def file(
    least: dict[str, Any], greatest: dict[str, Any], rows: int = 5, part: str | None = "1", **more: Any
) -> AddFile:
    nulls = more.pop("nulls", {})
    stats = {"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    text = json.dumps({**stats, **more}).replace('"!', "").replace('!"', "")
    return AddFile("f", 1, {"part": part}, 0, True, text, None, None, None)


def asked(text: str) -> LogQuery:
    query = read_query(text)
    assert isinstance(query, Query)
    found = log_query(query)
    assert found is not None
    return found


def answer(text: str, *files: AddFile, of: Metadata | None = None) -> tuple[Any, ...]:
    return answer_of(asked(text).aggregates, of or metadata(), files, case_sensitive=False)


def test_values_are_exact_in_the_types_of_their_columns() -> None:
    one = file(
        {"id": -3, "day": "2026-01-02", "n": "!12345678901234567.80!"},
        {"id": 4, "day": "2026-02-02", "n": "!900000000000000000.00!"},
    )
    two = file({"id": 0, "day": "0001-01-01", "n": 1}, {"id": 2**62, "day": "1999-12-31", "n": 2}, part=None)
    text = "SELECT count(*), min(ID) i, max(id), min(day), max(n) AS n, count(1) c, max(part), min(n) FROM t"
    assert answer(text, one, two) == (
        *(10, -3, 2**62, date(1, 1, 1), Decimal("900000000000000000.00"), 10, 1, Decimal("1.00")),
    )
    titles = tuple(one.title for one in asked(text).aggregates)
    assert titles == ("count(1)", "i", "max(id)", "min(day)", "n", "c", "max(part)", "min(n)")
    assert answer("SELECT count(*), min(id) FROM t") == (0, None)


def test_decimals_have_all_their_digits() -> None:
    digits = "123456789012345678.25"
    stored = file({"n": f"!{digits}!"}, {"n": f"!{digits}!"})
    wide = replace(metadata(), schema_json=metadata().schema_json.replace("decimal(20,2)", "decimal(38,20)"))
    found = answer("SELECT min(n) FROM t", stored, of=wide)
    assert found == (Decimal(digits),)
    assert str(found[0]) == f"{digits}{'0' * 18}"
    with pytest.raises(NotExact, match=r"which is no decimal\(20,2\)"):
        answer("SELECT min(n) FROM t", file({"n": "!1.005!"}, {"n": "!1.005!"}))


@pytest.mark.parametrize("said", ["9e17", "1.2345678901234568e17", "-12345678901234567", "10000000000000"])
def test_a_decimal_that_a_writer_may_have_rounded_is_not_exact(said: str) -> None:
    """As those of writers that take it through a floating-point number; the last is 10^15 hundredths."""
    with pytest.raises(NotExact, match="may have rounded"):
        answer("SELECT max(n) FROM t", file({"n": f"!{said}!"}, {"n": f"!{said}!"}))


def test_a_decimal_of_few_digits_is_exact_whoever_wrote_it() -> None:
    assert answer("SELECT max(n) FROM t", file({"n": "!-1.5!"}, {"n": "!9999999999999.99!"})) == (
        Decimal("9999999999999.99"),
    )


def test_files_of_nulls_and_files_without_rows_have_no_extremes() -> None:
    nulls, none = file({}, {}, nulls={"id": 5}), file({}, {}, rows=0)
    assert answer("SELECT min(id), count(*) FROM t", nulls, none) == (None, 5)
    assert answer("SELECT min(id) FROM t", nulls, file({"id": 3}, {"id": 3})) == (3,)


def test_deleted_rows_count_and_refuse_extremes() -> None:
    deleted = replace(file({"id": 1}, {"id": 2}), deletion_vector=VECTOR)
    assert answer("SELECT count(*) FROM t", deleted) == (3,)
    with pytest.raises(NotExact, match="deletion vector"):
        answer("SELECT max(id) FROM t", deleted)
    with pytest.raises(NotExact, match="deletion vector"):
        answer("SELECT max(part) FROM t", deleted)
    with pytest.raises(NotExact, match="more deleted rows"):
        answer("SELECT count(*) FROM t", replace(file({}, {}, rows=1), deletion_vector=VECTOR))


def test_statistics_are_under_the_physical_names() -> None:
    mapped = replace(file({"col-1": 7}, {"col-1": 9}), partition_values={"col-2": "4"})
    of = metadata(id="col-1", part="col-2")
    assert answer("SELECT min(id), max(id), min(part) FROM t", mapped, of=of) == (7, 9, 4)


@pytest.mark.parametrize(
    ("text", "stored", "reason"),
    [
        ("SELECT min(name) FROM t", file({"name": "a"}, {"name": "b"}), "beginnings of texts only"),
        ("SELECT max(x) FROM t", file({"x": 1.5}, {"x": 2.5}), "NaN"),
        ("SELECT max(at) FROM t", file({}, {}), "whole milliseconds"),
        ("SELECT min(tags) FROM t", file({}, {}), "of the type array"),
        ("SELECT min(nothing) FROM t", file({}, {}), "not a column"),
        ("SELECT min(id) FROM t", file({}, {}), "no statistics of id"),
        ("SELECT min(id) FROM t", file({"id": 1}, {}), "no statistics of id"),
        ("SELECT min(id) FROM t", file({}, {}, nulls={"id": 4}), "no statistics of id"),
        ("SELECT min(id) FROM t", file({"id": 1}, {"id": 1}, tightBounds=False), "deletion vector"),
        ("SELECT min(id) FROM t", file({"id": "x"}, {"id": "y"}), "which is no long"),
        ("SELECT min(id) FROM t", file({"id": 1.5}, {"id": 2}), "which is no long"),
        ("SELECT count(*) FROM t", replace(file({}, {}), stats=None), "no statistics"),
        ("SELECT count(*) FROM t", replace(file({}, {}), stats="{"), "no statistics"),
        ("SELECT count(*) FROM t", replace(file({}, {}), stats="{}"), "no number of rows"),
        *(
            ("SELECT count(*) FROM t", replace(file({}, {}), stats=f'{{"numRecords": {said}}}'), "no number of rows")
            for said in ("NaN", "Infinity", "-Infinity")
        ),
        ("SELECT count(*) FROM t", replace(file({}, {}), stats='{"numRecords": 1e999999999}'), "no statistics"),
        ("SELECT min(id) FROM t", file({"id": "1e999999999"}, {"id": "1e999999999"}), "which is no long"),
        ("SELECT min(part) FROM t", file({}, {}, part="1e999999999"), "which is no integer"),
        ("SELECT min(part) FROM t", file({}, {}, part="NaN"), "which is no integer"),
    ],
)
def test_what_the_log_does_not_have_exactly_is_left_to_spark(text: str, stored: AddFile, reason: str) -> None:
    with pytest.raises(NotExact, match=reason):
        answer(text, stored)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t WHERE id > 1",
        "SELECT count(*) FROM t GROUP BY id",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT count(id) FROM t",
        "SELECT count(* EXCEPT (id)) FROM t",
        "SELECT count(t.*) FROM t",
        "SELECT count(2) FROM t",
        "SELECT min(id) + 1 FROM t",
        "SELECT min(id), id FROM t",
        "SELECT min(id) OVER () FROM t",
        "SELECT min(id, 2) FROM t",
        "SELECT min(s.id) FROM t",
        "SELECT count(*) FROM t, u",
        "SELECT count(*) FROM t JOIN u ON true",
        "SELECT count(*) FROM (SELECT * FROM t)",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT DISTINCT count(*) FROM t",
        "SELECT count(*) FROM t HAVING count(*) > 1",
        "SELECT count(*) FILTER (WHERE id > 1) FROM t",
        "WITH c AS (SELECT * FROM t) SELECT count(*) FROM c",
        "SELECT count(*) FROM t UNION ALL SELECT count(*) FROM t",
        "SELECT min(id) IGNORE NULLS FROM t",
        "SELECT count(*) FROM t LATERAL VIEW explode(tags) e AS tag",
        "SELECT count(*) FROM t PIVOT (sum(id) FOR part IN (1, 2))",
        "SELECT count(*) FROM VALUES (1) AS t",
        "SELECT min(id) FROM t AS a(day, id)",
        "SELECT min(id) FROM t a(day, id)",
        "SELECT min(id) FROM t VERSION AS OF 1 AS a(day, id)",
    ],
)
def test_any_other_query_is_not_answered_by_a_log(text: str) -> None:
    query = read_query(text)
    assert not isinstance(query, Query) or log_query(query) is None
