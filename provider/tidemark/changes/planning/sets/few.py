"""Plans with so few rows that the driver reads them itself, without a query of Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.model.table_log import Metadata

__all__ = ["MOST_BYTES", "MOST_FILES", "MOST_IDS", "MOST_IMAGES", "has_few_rows"]

MOST_BYTES = 64 << 20  # of data files
MOST_FILES = 200
MOST_IDS = 4_000_000  # rows whose ids are compared: some 150 MB
MOST_IMAGES = 10_000  # rows that are left then

_PLAIN = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "boolean", "string", "binary", "date", "timestamp"}
    | {"timestamp_ntz"}
)
_OTHERWISE = re.compile(r'"delta.typeChanges"|"__COLLATIONS"|"char\(')
"""In the schema's JSON: columns that Spark casts, compares or pads."""
_OF_PARTITIONS = frozenset({"byte", "short", "integer", "long", "boolean", "string", "date"})


def has_few_rows(plan: ChangePlan) -> bool:
    """Whether the driver can read the plan: few bytes, and columns whose files PyArrow reads as Spark does."""
    sizes = {file.path: file.size for file in plan.files}
    return (
        not plan.keys
        and 0 < len(sizes) <= MOST_FILES
        and sum(sizes.values()) <= MOST_BYTES
        and plan.rows() <= MOST_IDS
        and _is_plain(plan.metadata)
        and _partitions_are_plain(plan)
    )


def _is_plain(metadata: Metadata) -> bool:
    if _OTHERWISE.search(metadata.schema_json):
        return False
    if source_schema.mapping_mode(metadata) != "none":
        return False
    atoms = source_schema.atoms(metadata)
    return all(atom in _PLAIN or atom.startswith("decimal(") for atom in atoms)


def _partitions_are_plain(plan: ChangePlan) -> bool:
    forms: Mapping[str, Any] = {field.physical: field.form["type"] for field in source_schema.fields(plan.metadata)}
    names = {name for file in plan.files for name in file.partition_columns}
    return all(forms.get(name) in _OF_PARTITIONS for name in names)
