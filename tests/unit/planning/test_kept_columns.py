"""Columns of bases that a kept query names, and whether they are still the same."""

from __future__ import annotations

import json

import pytest

from tidemark.materialized.planning.columns import changed_column, columns_read
from tidemark.model.views import ViewQuery


def schema(**columns: tuple[str, str | None]) -> str:
    """Name → type, and the name in files for a table that maps them."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {"delta.columnMapping.physicalName": physical}}
        if physical is not None
        else {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, (kind, physical) in columns.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def noted(base: str) -> dict[str, str]:
    query = ViewQuery("v", "SELECT id, note FROM t", schema(id=("long", None)), ("t",), {}, "digest")
    return columns_read(query, base)


MAPPED = schema(id=("long", "col-1"), note=("string", "col-2"), other=("string", "col-3"))


@pytest.mark.parametrize(
    ("now", "problem"),
    [
        (MAPPED, None),
        (schema(note=("string", "col-2"), id=("long", "col-1")), None),
        (schema(id=("long", "col-1"), note=("string", "col-9")), "dropped or renamed"),
        (schema(id=("long", "col-1"), note=("string", "col-3"), other=("string", "col-2")), "dropped or renamed"),
        (schema(id=("long", "col-1")), "note is gone"),
        (schema(id=("integer", "col-1"), note=("string", "col-2")), "has the type integer, and had long"),
    ],
)
def test_a_column_of_a_mapped_table_is_known_by_its_name_in_files(now: str, problem: str | None) -> None:
    found = changed_column(noted(MAPPED), now)
    assert found is None if problem is None else problem in (found or "")


def test_a_column_that_was_noted_without_a_mapping_is_known_by_its_type() -> None:
    plain = schema(id=("long", None), note=("string", None))
    assert changed_column(noted(plain), plain) is None
    assert changed_column(noted(plain), MAPPED) is None
    assert "had string" in (changed_column(noted(plain), schema(id=("long", "a"), note=("long", "b"))) or "")


def test_a_name_in_files_may_have_any_letters() -> None:
    odd = schema(id=("long", 'a", "type": "x'), note=("string", "}"))
    assert changed_column(noted(odd), odd) is None
    assert "dropped or renamed" in (changed_column(noted(odd), schema(id=("long", "a"), note=("string", "}"))) or "")
