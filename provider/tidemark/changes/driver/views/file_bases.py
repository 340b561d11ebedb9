"""An external table as a base of a kept query. Its rows are those of the files in its list, which come and go whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tidemark.changes.driver.data_files import columns, listed_changes, listed_files, rows_of_files
from tidemark.changes.driver.past_versions import read_version
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.driver.views.bases import ROW, SIGNED, Base
from tidemark.lake.external_tables import definition, require_unchanged
from tidemark.model.external_tables import DataFile, ExternalTable
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tidemark.jobs.workspace import Workspace

__all__ = ["FileBase"]


@dataclass(frozen=True)
class FileBase(Base):
    """A base whose log is that of a list of files. Its rows have no ids: ROW is NULL, so equal rows cancel by signs
    alone. Every file that is read must be as the list has it.
    """

    options: Mapping[str, Any] | None = field(default=None, compare=False)

    @cached_property
    def table(self) -> ExternalTable:
        """The external table. Raises ExternalTableNotFound."""
        return definition(self.log)

    @property
    def schema(self) -> StructType:
        """The columns of the files, which never change."""
        return columns(self.table)

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self.schema.names)

    def rows(self, spark: SparkSession, version: int) -> DataFrame:
        """All rows of the files in the list at a version: the columns, ROW. Raises DataFileChanged."""
        return self._rows_of(spark, listed_files(read_version(spark, self.log.uri, version)))

    def require_files_of(self, rows: DataFrame) -> None:
        """Nothing: `rows` has looked at the files."""

    def changes(self, spark: SparkSession, workspace: Workspace) -> DataFrame:
        """The rows of files that came (+1) and went (−1). Raises DataFileChanged for one that is gone or overwritten,
        and VersionVacuumed.
        """
        came, went = listed_changes(read_changes(spark, self.log, self.plan, workspace))
        signed = ((came, 1), (went, -1))
        plus, minus = (self._rows_of(spark, files).withColumn(SIGNED, F.lit(sign)) for files, sign in signed)
        return plus.unionByName(minus)

    def _rows_of(self, spark: SparkSession, files: Sequence[DataFile]) -> DataFrame:
        table = self.table
        require_unchanged(table, files, self.options)
        rows = rows_of_files(spark, table, files)
        return rows.select(*map(quoted, self.columns), F.lit(None).cast("bigint").alias(ROW))
