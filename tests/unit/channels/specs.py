"""Tables for tests of channels that need no table."""

from __future__ import annotations

import json
from typing import Any

from tidemark.channels.driver.table_spec import TableSpec, spec_of
from tidemark.model.table_log import Metadata, Protocol

__all__ = ["PROTOCOL", "field", "metadata", "spec"]

PROTOCOL = Protocol(3, 7, ("deletionVectors",), ("deletionVectors", "domainMetadata", "rowTracking", "invariants"))


def field(name: str, kind: Any, *, nullable: bool = True, **more: Any) -> dict[str, Any]:
    """A column in Delta's form."""
    return {"name": name, "type": kind, "nullable": nullable, "metadata": more}


def metadata(*fields: dict[str, Any], partitioned_by: tuple[str, ...] = (), **configuration: str) -> Metadata:
    """The metadata of a table with these columns."""
    return Metadata("id-1", json.dumps({"type": "struct", "fields": fields}), partitioned_by, configuration)


def spec(*fields: dict[str, Any], partitioned_by: tuple[str, ...] = ()) -> TableSpec:
    """The table as channels write it."""
    return spec_of("db.t", metadata(*fields, partitioned_by=partitioned_by), PROTOCOL)
