"""Columns that a channel cannot write are refused by name, from the schema in the table's log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.channels.specs import field, spec
from tidemark.errors import TableNotSupported

COLLATED = {"__COLLATIONS": {"v": "icu.UNICODE_CI"}}
INVARIANT = {"delta.invariants": '{"expression": {"expression": "v > 3"}}'}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "collated text": (field("v", "string", **COLLATED), "column v has a collation"),
    "collated elements": (
        field("v", array("string"), __COLLATIONS={"v.element": "spark.UTF8_LCASE"}),
        "column v has a collation",
    ),
    "collated values of a map": (
        field(
            "v",
            {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
            __COLLATIONS={"v.value": "spark.UTF8_LCASE"},
        ),
        "column v has a collation",
    ),
    "collated field": (field("o", struct(field("v", "string", **COLLATED))), r"column o\.v has a collation"),
    "collated field of elements": (
        field("a", array(struct(field("v", "string", **COLLATED)))),
        r"column a\.element\.v has a collation",
    ),
    "collation in the type": (field("v", "string collate UNICODE_CI"), "column v has a collation"),
    "short texts in elements": (
        field("v", array("string"), __CHAR_VARCHAR_TYPE_STRING="array<varchar(3)>"),
        "column v has a CHAR or VARCHAR inside an ARRAY",
    ),
    "short text in a field": (
        field("o", struct(field("v", "string")), __CHAR_VARCHAR_TYPE_STRING="struct<v:char(3)>"),
        "column o has a CHAR or VARCHAR inside an ARRAY",
    ),
    "geography": (field("g", "geography(OGC:CRS84, SPHERICAL)"), "column g is of type GEOGRAPHY"),
    "geometry in elements": (field("g", array("geometry(4326)")), r"column g\.element is of type GEOMETRY"),
    "invariant": (field("v", "long", **INVARIANT), "column v has an invariant"),
    "invariant of a field": (field("o", struct(field("v", "long", **INVARIANT))), r"column o\.v has an invariant"),
    "generated": (field("v", "long", **{"delta.generationExpression": "id * 2"}), "column v is a generated column"),
    "default beyond all bounds": (
        field("v", "string", CURRENT_DEFAULT=f"1e{'9' * 20}"),
        "column v has the default .* not a constant",
    ),
    "negative default beyond all bounds": (
        field("v", "string", CURRENT_DEFAULT="-1e999999999"),
        "column v has the default .* not a constant",
    ),
    "identity": (field("v", "long", **{"delta.identity.start": 1}), "column v is an identity column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_no_channel_can_write_is_refused_with_code_6_and_by_name(case: str) -> None:
    column, problem = REFUSED[case]
    with pytest.raises(TableNotSupported, match=problem) as raised:
        spec(field("id", "long"), column)
    assert "code 6" in str(raised.value)
