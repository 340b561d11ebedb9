"""A write is refused by the two schemas alone, and nothing that the job would take is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.delivery.planning.write_fit import require_fit
from tidemark.errors import MissingMergeKey, TargetDoesNotFit
from tidemark.model.statements import PlannedWrite, SchemaEvolution, WriteAs


def schema(*fields: tuple[str, Any] | dict[str, Any]) -> str:
    named = [f if isinstance(f, dict) else {"name": f[0], "type": f[1], "nullable": True} for f in fields]
    return json.dumps({"type": "struct", "fields": named})


def write(write_as: WriteAs = WriteAs.APPEND, **more: Any) -> PlannedWrite:
    return PlannedWrite(write_as=write_as, target="t.copy", source="s", **more)


ID, NAME = ("id", "integer"), ("name", "string")
NESTED = ("at", {"type": "struct", "fields": [{"name": "x", "type": "integer"}]})
OTHER_NESTED = ("at", {"type": "struct", "fields": [{"name": "x", "type": "string"}]})
MUST = {"name": "must", "type": "string", "nullable": False}
FILLED = {**MUST, "metadata": {"CURRENT_DEFAULT": "'x'"}}


@pytest.mark.parametrize(
    ("asked", "source", "target"),
    [
        (write(), schema(ID, NAME), schema(ID, NAME)),
        (write(), schema(("ID", "integer")), schema(ID)),
        (write(), schema(ID), schema(ID, NAME)),
        (write(), schema(ID), schema(("id", "long"))),
        (write(), schema(("id", "long")), schema(("id", "decimal(19,0)"))),
        (write(), schema(("id", "decimal(5,2)")), schema(("id", "decimal(7, 3)"))),
        (write(), schema(("id", "float")), schema(("id", "double"))),
        (write(), schema(ID), schema(("id", "double"))),
        (write(), schema(NESTED), schema(OTHER_NESTED)),  # left to the job
        (write(), schema(("id", "void")), schema(NAME)),
        (write(), schema(("id", "geometry(4326)")), schema(ID)),
        (write(), schema(ID), schema(ID, FILLED)),
        (write(), schema(ID), schema(ID, {**MUST, "name": "METADATA$ROW_ID"})),
        (write(schema_evolution=SchemaEvolution.ADD), schema(ID, NAME), schema(ID)),
        (write(quarantine="t.q"), schema(("id", "string")), schema(ID)),
        (write(WriteAs.MERGE, keys=("Id",)), schema(ID), schema(ID)),
        (write(WriteAs.MERGE, keys=("METADATA$ROW_ID",)), schema(ID), schema(ID, ("METADATA$ROW_ID", "string"))),
        (write(WriteAs.SQL, sql="INSERT …"), schema(ID), schema(NAME)),
        (write(WriteAs.FUNCTION, function="m:f"), schema(ID), schema(NAME)),
        (write(), schema(), schema(ID)),
        (write(), "no schema", schema(ID)),
        (write(), "[]", '{"fields": [1]}'),
        (write(), schema(ID), "{}"),
    ],
)
def test_what_fits_or_is_not_certain_is_left_to_the_job(asked: PlannedWrite, source: str, target: str) -> None:
    require_fit(asked, source, target)


@pytest.mark.parametrize(
    ("asked", "source", "target", "error", "problem"),
    [
        (write(), schema(ID, NAME), schema(ID), TargetDoesNotFit, "it has no column name (schema_evolution='add'"),
        (write(), schema(("id", "long")), schema(ID), TargetDoesNotFit, "column id is bigint, there int"),
        (write(), schema(("id", "long")), schema(("id", "double")), TargetDoesNotFit, "is bigint, there double"),
        (write(), schema(("id", "string")), schema(ID), TargetDoesNotFit, "column id is string, there int"),
        (write(), schema(("id", "decimal(7,3)")), schema(("id", "decimal(7,2)")), TargetDoesNotFit, "column id"),
        (write(), schema(ID), schema(ID, MUST), TargetDoesNotFit, "its NOT NULL column must would get no value"),
        (write(), schema(ID, NAME), schema(NAME, MUST), TargetDoesNotFit, "no column id (schema_evolution='add' wo"),
        (
            write(WriteAs.MERGE, keys=("order_id",)),
            schema(ID),
            schema(ID),
            MissingMergeKey,
            "no column order_id; it",
        ),
        (
            write(WriteAs.MERGE, keys=("id",), schema_evolution=SchemaEvolution.ADD),
            schema(ID),
            schema(NAME),
            MissingMergeKey,
            "the target has no column id; it has name",
        ),
    ],
)
def test_what_cannot_go_together_is_named(
    asked: PlannedWrite, source: str, target: str, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error) as refused:
        require_fit(asked, source, target)

    assert problem in str(refused.value)
    assert "t.copy" in str(refused.value)
