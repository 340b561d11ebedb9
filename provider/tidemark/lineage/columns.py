"""Columns of a Delta table as OpenLineage's facets have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openlineage.client.facet_v2 import column_lineage_dataset, schema_dataset

from tidemark.changes.planning.source_schema import Field, fields
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.model.table_log import Metadata

__all__ = ["column_lineage", "schema"]

Named = tuple[str, str]  # namespace and name of a dataset


def schema(metadata: Metadata) -> schema_dataset.SchemaDatasetFacet:
    """Names, Delta's types, comments; structs with their own fields."""
    return schema_dataset.SchemaDatasetFacet(fields=[_field(field.form) for field in fields(metadata)])


def column_lineage(
    write: PlannedWrite, source: Named, read: Metadata, written: Metadata
) -> column_lineage_dataset.ColumnLineageDatasetFacet | None:
    """The source column of each target column; None for SQL and functions, which do not show it.

    A merge's keys decide which rows change, so every column depends on them.
    """
    if write.write_as not in (WriteAs.APPEND, WriteAs.MERGE):
        return None
    by_name = {field.name.lower(): field for field in fields(read)}
    copied = [(target, by_name[target.name.lower()]) for target in fields(written) if target.name.lower() in by_name]
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={
            target.name: column_lineage_dataset.Fields(inputFields=[_copied(source, column, target)])
            for target, column in copied
        },
        dataset=_keys(write, source, list(by_name.values())),
    )


def _copied(source: Named, column: Field, target: Field) -> column_lineage_dataset.InputField:
    same = column.form["type"] == target.form["type"]
    how = column_lineage_dataset.Transformation(
        type="DIRECT",
        subtype="IDENTITY" if same else "TRANSFORMATION",
        description=None if same else f"{_type(column.form['type'])} cast to {_type(target.form['type'])}",
    )
    return column_lineage_dataset.InputField(*source, field=column.name, transformations=[how])


def _keys(write: PlannedWrite, source: Named, read: Sequence[Field]) -> list[column_lineage_dataset.InputField]:
    wanted = {key.lower() for key in write.keys}
    join = column_lineage_dataset.Transformation(type="INDIRECT", subtype="JOIN")
    return [
        column_lineage_dataset.InputField(*source, field=column.name, transformations=[join])
        for column in read
        if column.name.lower() in wanted
    ]


def _field(form: Mapping[str, Any]) -> schema_dataset.SchemaDatasetFacetFields:
    inner = form["type"]["fields"] if _type(form["type"]) == "struct" else []
    return schema_dataset.SchemaDatasetFacetFields(
        name=form["name"],
        type=_type(form["type"]),
        description=form.get("metadata", {}).get("comment"),
        fields=[_field(one) for one in inner],
    )


def _type(form: Any) -> str:
    """`long`, `decimal(10,2)`, `struct`, `array<long>`, `map<string,long>`."""
    if isinstance(form, str):
        return form
    if form["type"] == "array":
        return f"array<{_type(form['elementType'])}>"
    if form["type"] == "map":
        return f"map<{_type(form['keyType'])},{_type(form['valueType'])}>"
    return str(form["type"])
