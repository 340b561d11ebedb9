"""The table that gets the rows of files, and the columns that they fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from tidemark.delivery.driver.checks import filled_by_delta
from tidemark.delivery.driver.fit import missing_required
from tidemark.errors import CopyRefused
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import Metadata
from tidemark.pipes.model.copying import Load

__all__ = ["Target", "open_target"]


@dataclass(frozen=True)
class Target:
    """A Delta table at a version. `schema`: its columns, with their metadata."""

    name: str
    path: str
    log: DeltaLog
    version: int
    metadata: Metadata
    schema: StructType

    def field(self, name: str) -> StructField | None:
        """The column of that name, in any case."""
        return next((field for field in self.schema.fields if field.name.lower() == name.lower()), None)

    def wanted(self, load: Load) -> tuple[StructField, ...]:
        """The columns that the statement names; without names all that Delta does not fill itself. Raises
        CopyRefused.
        """
        if not load.columns:
            return tuple(f for f in self.schema.fields if not filled_by_delta(f))
        found = [(name, self.field(name)) for name in load.columns]
        if missing := [name for name, field in found if field is None]:
            there = ", ".join(self.schema.names)
            problem = f"it has no column {', '.join(missing)}; it has {there}."
            raise CopyRefused(table=self.name, problem=problem)
        return tuple(field for _, field in found if field is not None)

    def require_values(self, given: frozenset[str]) -> None:
        """Nothing, or CopyRefused for a NOT NULL column that gets no value. `given`: names in lower case."""
        if missing := missing_required(given, self.schema):
            problem = f"its NOT NULL column {', '.join(missing)} would get no value."
            raise CopyRefused(table=self.name, problem=problem)


def open_target(load: Load, options: Mapping[str, str] | None) -> Target:
    """The target now. Raises TableNotFound, NotADeltaTable."""
    log = DeltaLog.open(load.path, options)
    state = log.state()
    return Target(load.table, log.uri, log, state.version, state.metadata, struct_type(state.metadata.schema_json))
