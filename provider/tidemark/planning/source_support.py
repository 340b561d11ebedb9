"""Which tables a stream can read: an allow-list, so that a feature nobody has thought of is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidemark.errors import RowTrackingDisabled, UnsupportedTableFeature
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID
from tidemark.model.table_log import TableState
from tidemark.planning import source_schema

__all__ = ["READABLE_FEATURES", "require_own_files", "require_readable"]

READ_BY_SPARK = frozenset({"deletionVectors", "columnMapping", "timestampNtz"})
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
    }
)
READABLE_FEATURES = READ_BY_SPARK | READ_BY_THE_LOG_READER | NEEDED | OF_NO_CONCERN_TO_A_READER

_ADVICE = {
    "catalogManaged": "Its commits are the catalog's, so its log cannot be read by path.",
    "catalogOwned-preview": "Its commits are the catalog's, so its log cannot be read by path.",
}
_DROP = "Drop the feature (ALTER TABLE … DROP FEATURE), or read another table."
_ABSOLUTE = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*:|/)")


def require_readable(state: TableState, table: str) -> None:
    """Say nothing if a stream can read the table as it is in `state`.

    Raises UnsupportedTableFeature with the feature's name, or RowTrackingDisabled with the ALTER that turns it on.
    `table` is how the error names the table: as SQL can, for example delta.`/path`.
    """
    features = {*state.protocol.reader_features, *state.protocol.writer_features}
    for feature in sorted(features - READABLE_FEATURES):
        raise UnsupportedTableFeature(table=table, feature=feature, instead=_ADVICE.get(feature, _DROP))
    mode = state.metadata.configuration.get("delta.columnMapping.mode", "none")
    if mode not in ("none", "name"):
        raise UnsupportedTableFeature(table=table, feature=f"columnMapping by {mode}", instead="Map columns by name.")
    for field in source_schema.fields(state.metadata):
        if field.name.upper() in (ACTION, IS_UPDATE, ROW_ID):
            raise UnsupportedTableFeature(
                table=table, feature=f"column {field.name}", instead="A stream shows a column of this name: rename it."
            )
    if not state.row_tracking:
        raise RowTrackingDisabled(table=table, sql_name=table)


def require_own_files(paths: Iterable[str], table: str) -> None:
    """Raises UnsupportedTableFeature for a table whose log names files outside it: a shallow clone."""
    for path in paths:
        if _ABSOLUTE.match(path):
            raise UnsupportedTableFeature(
                table=table, feature="shallow clone", instead="Make a deep copy, or read the table it was cloned from."
            )
