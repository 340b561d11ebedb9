"""The tables that a stream can read: an allow-list, so that unknown features are refused by name."""

from __future__ import annotations

from tidemark.changes.planning import source_schema
from tidemark.errors import RowTrackingDisabled, UnsupportedTableFeature
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID
from tidemark.model.table_log import Metadata, TableState

__all__ = ["READABLE_FEATURES", "require_readable", "row_tracking"]

READ_BY_SPARK = frozenset(
    {
        "deletionVectors",
        "columnMapping",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
READ_BY_THE_LOG_READER = frozenset({"v2Checkpoint", "inCommitTimestamp"})
NEEDED = frozenset({"rowTracking", "domainMetadata"})
OF_NO_CONCERN_TO_A_READER = frozenset(
    {
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "allowColumnDefaults",
        "clustering",
        "vacuumProtocolCheck",
        "checkpointProtection",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "materializePartitionColumns",
        "coordinatedCommits-preview",  # until a coordinator is named
        "geospatial",  # until a column is of such a type
        "geospatial-dev",
    }
)
READABLE_FEATURES = READ_BY_SPARK | READ_BY_THE_LOG_READER | NEEDED | OF_NO_CONCERN_TO_A_READER

_READABLE_TYPES = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz", "variant", "void"),
    }
)
_DECIMAL = "decimal("
_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
_BY_CATALOG = "Its commits are the catalog's, so its log cannot be read by path."
_ADVICE = {
    "catalogManaged": _BY_CATALOG,
    "catalogOwned-preview": _BY_CATALOG,
    "adaptiveMetadata-preview": _BY_CATALOG,
}
_DROP = "Drop the feature (ALTER TABLE … DROP FEATURE), or read another table."


def require_readable(state: TableState, table: str, *, row_ids: bool = True) -> None:
    """Nothing, if a stream can read the table in `state`; without `row_ids` row tracking may be off.

    Raises UnsupportedTableFeature with the feature's name, or RowTrackingDisabled with the ALTER that enables it.
    `table`: its name in the error, in SQL's form, for example delta.`/path`.
    """
    features = {*state.protocol.reader_features, *state.protocol.writer_features}
    for feature in sorted(features - READABLE_FEATURES):
        raise UnsupportedTableFeature(table=table, feature=feature, instead=_ADVICE.get(feature, _DROP))
    if state.metadata.configuration.get(_COORDINATOR):
        raise UnsupportedTableFeature(table=table, feature="coordinatedCommits-preview", instead=_BY_CATALOG)
    _require_readable_types(state, table)
    for field in source_schema.fields(state.metadata):
        if field.name.upper() in (ACTION, IS_UPDATE, ROW_ID, COMMIT_VERSION, COMMIT_TIMESTAMP):
            raise UnsupportedTableFeature(
                table=table, feature=f"column {field.name}", instead="A stream shows a column of this name: rename it."
            )
    if row_ids and not state.row_tracking:
        raise RowTrackingDisabled(table=table, sql_name=table)


def row_tracking(metadata: Metadata) -> tuple[str | None, ...]:
    """The properties of row tracking. While they stay, a row keeps its id."""
    names = (
        "delta.enableRowTracking",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
    return tuple(metadata.configuration.get(name) for name in names)


def _require_readable_types(state: TableState, table: str) -> None:
    for atom in sorted(source_schema.atoms(state.metadata) - _READABLE_TYPES):
        if not atom.startswith(_DECIMAL):
            raise UnsupportedTableFeature(
                table=table, feature=f"type {atom}", instead="Spark and Delta cannot read columns of this type."
            )
