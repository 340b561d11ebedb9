"""Log-only tables: a Delta log alone, whose files are another table's, read in place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from itertools import chain
from typing import Any

from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import Origin, PlannedFile
from tidemark.model.table_log import DeletionVector, Metadata

__all__ = ["CHANGE_TYPE", "COMMIT_NAME", "OLD_IMAGES", "ROW_ID_NAME", "commit_of", "origin_column", "version_column"]

CHANGE_TYPE = "_change_type"  # Delta's name in its change files
OLD_IMAGES = ("update_preimage", "delete")  # change types
ROW_ID_NAME = "delta.rowTracking.materializedRowIdColumnName"  # table properties that name hidden columns of files
COMMIT_NAME = "delta.rowTracking.materializedRowCommitVersionColumnName"

_COLUMN_MAPPING = "delta.columnMapping."
_TYPE_CHANGES = '"delta.typeChanges"'  # in the metadata of a field: its types in older files
_ROW_TRACKING = ("delta.enableRowTracking", "delta.rowTracking.")
_FOR_WRITERS = (
    "delta.generationExpression",
    "delta.identity.",
    "delta.invariants",
    "CURRENT_DEFAULT",
    "EXISTS_DEFAULT",
)


def origin_column(metadata: Metadata) -> str:
    """A name for the column of origins that the table does not use itself."""
    return _unused(metadata, "__origin")


def version_column(metadata: Metadata) -> str:
    """A name for the column of commit versions that the table does not use itself."""
    return _unused(metadata, "__version")


def commit_of(
    metadata: Metadata,
    partition_columns: tuple[str, ...],
    files: Iterable[PlannedFile],
    *,
    row_ids: bool = True,
    marks: bool = True,
) -> bytes:
    """The only commit of a log-only table: version 0 of a table with `files`. Its partition columns have the origin
    (int, an `Origin`) and the version (bigint) of their rows. Change files also have the column of change types.
    Without `row_ids` its rows have none. Without `marks` it has neither of the two columns.

    It has the lowest protocol that reads the files, and the parts of `metadata` that a reader needs. `metadata` has the
    schema of the changes. All `files` must be partitioned by `partition_columns` (physical names), have stored vectors
    (`with_stored_vectors`), and be all change files, or none.
    """
    files = tuple(files)
    origin, version = origin_column(metadata), version_column(metadata)
    lines = BytesIO()  # one action at a time: a window may have millions of files
    actions: Iterator[dict[str, Any]] = chain(
        [{"protocol": _protocol(metadata, files, row_ids)}],
        [{"metaData": _metadata(metadata, partition_columns, files, row_ids, marks)}],
        (
            {"add": _add(file, {origin: str(int(file.origin)), version: str(file.version)} if marks else {}, row_ids)}
            for file in files
        ),
    )
    for action in actions:
        lines.write(json.dumps(action, ensure_ascii=False).encode() + b"\n")
    return lines.getvalue()


def _protocol(metadata: Metadata, files: tuple[PlannedFile, ...], row_ids: bool) -> dict[str, Any]:
    atoms = source_schema.atoms(metadata)
    needed = {
        "deletionVectors": any(file.deletion_vector for file in files),
        "columnMapping": source_schema.mapping_mode(metadata) != "none",
        "timestampNtz": "timestamp_ntz" in atoms,
        "typeWidening": _TYPE_CHANGES in metadata.schema_json,
        "variantType": "variant" in atoms,
    }
    reader = [feature for feature, is_needed in needed.items() if is_needed]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": reader,
        "writerFeatures": [*reader, *(("domainMetadata", "rowTracking") if row_ids else ())],
    }


def _metadata(
    metadata: Metadata, partition_columns: tuple[str, ...], files: tuple[PlannedFile, ...], row_ids: bool, marks: bool
) -> dict[str, Any]:
    logical = {field.physical: field.name for field in source_schema.fields(metadata)}
    configuration = {
        name: value
        for name, value in metadata.configuration.items()
        if name.startswith((_COLUMN_MAPPING, *(_ROW_TRACKING if row_ids else ())))
    }
    ours = {origin_column(metadata): "integer", version_column(metadata): "long"} if marks else {}
    added = ours | ({CHANGE_TYPE: "string"} if any(file.origin is Origin.CHANGES for file in files) else {})
    number = int(configuration.get(f"{_COLUMN_MAPPING}maxColumnId", "0"))
    fields = [_for_readers(field.form) for field in source_schema.fields(metadata)]
    for name, kind in added.items():
        number += 1
        mapped = {f"{_COLUMN_MAPPING}id": number, f"{_COLUMN_MAPPING}physicalName": name}
        is_mapped = source_schema.mapping_mode(metadata) != "none"
        fields.append({"name": name, "type": kind, "nullable": True, "metadata": mapped if is_mapped else {}})
    if source_schema.mapping_mode(metadata) != "none":
        configuration[f"{_COLUMN_MAPPING}maxColumnId"] = str(number)
    return {
        "id": metadata.table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False),
        "partitionColumns": [*(logical[name] for name in partition_columns), *ours],
        "configuration": configuration,
        "createdTime": 0,
    }


def _add(file: PlannedFile, ours: Mapping[str, str], row_ids: bool) -> dict[str, Any]:
    deleted = file.deletion_vector.cardinality if file.deletion_vector else 0
    action: dict[str, Any] = {
        "path": file.path,
        "partitionValues": {**file.partition_values, **ours},
        "size": file.size,
        "modificationTime": file.modification_time,
        "dataChange": True,
        "stats": file.stats or json.dumps({"numRecords": file.rows + deleted}),
    }
    if row_ids:
        action |= {"baseRowId": file.base_row_id, "defaultRowCommitVersion": file.default_row_commit_version}
    if file.deletion_vector:
        assert isinstance(file.deletion_vector, DeletionVector), "it is not stored yet"
        action["deletionVector"] = _descriptor(file.deletion_vector)
    return action


def _descriptor(vector: DeletionVector) -> dict[str, Any]:
    descriptor = {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
    }
    return descriptor if vector.offset is None else {**descriptor, "offset": vector.offset}


def _for_readers(form: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in form["metadata"].items() if not name.startswith(_FOR_WRITERS)}
    return {**form, "nullable": True, "metadata": kept}


def _unused(metadata: Metadata, name: str) -> str:
    taken = {text.lower() for field in source_schema.fields(metadata) for text in (field.name, field.physical)}
    while name in taken:
        name += "_"
    return name
