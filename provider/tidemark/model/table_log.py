"""The content of a Delta transaction log as values. Field names are those of Delta's protocol, in snake case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidemark.model.foreign_json import foreign_object

__all__ = [
    "AddFile",
    "ChangeFile",
    "Commit",
    "DeletionVector",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "TableState",
    "UnstoredVector",
]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A deletion vector descriptor. `storage_type`: u (relative, encoded), p (absolute path), i (inline)."""

    storage_type: str
    path_or_inline: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """Identity of the vector within its table (Delta protocol, "Deletion Vector Descriptor Schema")."""
        return f"{self.storage_type}{self.path_or_inline}" + ("" if self.offset is None else f"@{self.offset}")


@dataclass(frozen=True)
class UnstoredVector:
    """A deletion vector that is not stored yet and is too large for a log. It has data in Delta's form, and a number of
    rows.
    """

    data: bytes = field(repr=False)
    cardinality: int

    @property
    def unique_id(self) -> str:
        """The identity of the vector. Vectors with the same content are the same."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


@dataclass(frozen=True, slots=True)
class AddFile:
    """An `add` action. `path` is the percent-encoded URI as the log has it; `stats` is the raw JSON text, if any."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    modification_time: int
    data_change: bool
    stats: str | None
    deletion_vector: DeletionVector | None
    base_row_id: int | None
    default_row_commit_version: int | None

    @property
    def key(self) -> tuple[str, str | None]:
        """Identity of the logical file: path and deletion vector."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A `remove` action. Size, partition values and stats are optional in the protocol; None if missing."""

    path: str
    data_change: bool
    deletion_timestamp: int | None
    size: int | None
    partition_values: Mapping[str, str | None] | None
    stats: str | None
    deletion_vector: DeletionVector | None
    base_row_id: int | None
    default_row_commit_version: int | None

    @property
    def key(self) -> tuple[str, str | None]:
        """Identity of the logical file: path and deletion vector."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class ChangeFile:
    """A `cdc` action: a file of changes. If a commit has any, they have all its changes of rows."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True)
class Metadata:
    """A `metaData` action. `schema_json` is the raw `schemaString`."""

    table_id: str
    schema_json: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    provider: str = "parquet"


@dataclass(frozen=True)
class Protocol:
    """A `protocol` action. Feature lists are empty if legacy versions imply them."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commit:
    """One committed version: its file actions, and metaData, protocol and row-id mark if it changed them.

    `timestamp`: the in-commit timestamp if the commit has one, else the modification time of the commit file (UTC).
    """

    version: int
    timestamp: datetime
    operation: str | None
    adds: tuple[AddFile, ...]
    removes: tuple[RemoveFile, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    row_id_high_water_mark: int | None
    user_metadata: str | None
    operation_parameters: Mapping[str, str] = field(default_factory=dict)  # commitInfo's, such as RESTORE's version
    operation_metrics: Mapping[str, str] = field(default_factory=dict)  # commitInfo's, such as numOutputRows
    transactions: Mapping[str, int] = field(default_factory=dict)  # `txn` actions: appId → version
    change_files: tuple[ChangeFile, ...] = ()
    txn_id: str | None = None  # commitInfo's: the writer's name for this commit


@dataclass(frozen=True)
class TableState:
    """A table at one version, without its files. `transactions`: appId → the newest committed version, which Delta
    keeps after the commit itself is cleaned up. `domains`: domain → its value.
    """

    version: int
    metadata: Metadata
    protocol: Protocol
    row_id_high_water_mark: int | None
    transactions: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)

    @property
    def table_id(self) -> str:
        """Delta's table id, which is the table's identity (R82)."""
        return self.metadata.table_id

    @property
    def clustering(self) -> tuple[tuple[Any, ...], ...]:
        """The physical paths of the columns by which Delta clusters the table; empty without a key."""
        said = foreign_object(self.domains.get("delta.clustering")).get("clusteringColumns")
        return tuple(tuple(one) for one in said if isinstance(one, list)) if isinstance(said, list) else ()

    @property
    def row_tracking(self) -> bool:
        """Whether rows have stable ids, which is "change tracking enabled" here."""
        return self.metadata.configuration.get("delta.enableRowTracking", "false").lower() == "true"
