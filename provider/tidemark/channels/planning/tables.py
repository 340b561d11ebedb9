"""Tables to which Delta Kernel can commit rows of a channel."""

from __future__ import annotations

from tidemark.channels.model.columns import Column
from tidemark.channels.planning.columns import ColumnRefused, columns_of
from tidemark.errors import TableNotSupported
from tidemark.model.table_log import Metadata, Protocol

__all__ = ["columns_for_channels"]

_CHECK = "delta.constraints."
_NEEDED = "domainMetadata"
_HOW_TO = "Enable row tracking, which brings it: ALTER TABLE … SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
_SUPPORTED = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"),
        *("columnMapping", "deletionVectors", "rowTracking", "domainMetadata", "clustering", "inCommitTimestamp"),
        *("timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck"),
        *("allowColumnDefaults", "variantType", "variantType-preview"),
    }
)


def columns_for_channels(table: str, metadata: Metadata, protocol: Protocol) -> tuple[Column, ...]:
    """The columns of a table that takes rows of channels. Raises TableNotSupported (code 6).

    The table needs domain metadata. CHECK constraints, invariants, identity and generated columns,
    collations and geographic types are refused. Delta Kernel cannot commit to them, or would not check them.
    """
    problem = _problem(metadata, protocol)
    if problem is not None:
        raise TableNotSupported(table=table, problem=problem)
    try:
        return columns_of(metadata.schema_json)
    except ColumnRefused as error:
        raise TableNotSupported(table=table, problem=str(error)) from None


def _problem(metadata: Metadata, protocol: Protocol) -> str | None:
    if metadata.provider != "parquet":
        return f"its files are of format {metadata.provider}"
    if _NEEDED not in protocol.writer_features:
        return f"it lacks the table feature {_NEEDED}. {_HOW_TO}"
    unknown = sorted({*protocol.writer_features, *protocol.reader_features} - _SUPPORTED)
    if unknown:
        return f"it has the table features {', '.join(unknown)}"
    checks = sorted(name[len(_CHECK) :] for name in metadata.configuration if name.startswith(_CHECK))
    return f"it has the CHECK constraints {', '.join(checks)}" if checks else None
