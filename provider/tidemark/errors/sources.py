"""Errors of the table that a stream reads, and of the storage that holds it."""

from __future__ import annotations

from typing import Any

from tidemark.errors.tree import TidemarkError
from tidemark.model.streams import Addressing, TableRef

__all__ = [
    "AmbiguousTableName",
    "CatalogTableMoved",
    "CommitsMayBeLost",
    "CorruptLog",
    "DataFileUnreadable",
    "FileNotDescribed",
    "IncompatibleSchemaChange",
    "LakeError",
    "LogIncomplete",
    "NotADeltaTable",
    "NotAFile",
    "RowTrackingDisabled",
    "RowsRenumbered",
    "SourceCopied",
    "SourceError",
    "SourceMoved",
    "StorageRefused",
    "StorageUnreachable",
    "TableNotFound",
    "UnsupportedTableFeature",
    "VersionNotFound",
    "VersionVacuumed",
]

_SKIP_OR_REBASE = (
    "Skip them with AdvanceStreamOperator, or put the stream onto the current table with RebaseStreamOperator; in a"
    " notebook, use lake.advance_stream or lake.rebase_stream."
)


class SourceError(TidemarkError):
    """{message}"""


class TableNotFound(SourceError):
    """No table exists at {path}: the directory does not exist, or has no commit of a table. {hint} If a stream's table
    was renamed or moved, run airflow tidemark streams relocate STREAM --to its new name.
    """

    hint: str

    def __init__(self, *, hint: str = "Check the name or the lake root.", **facts: Any) -> None:
        super().__init__(hint=hint, **facts)


class AmbiguousTableName(SourceError):
    """The name {name!r} means two tables: {path} below the lake root, and {location} in Spark's catalog. Name the first
    by its path, or the other with its catalog, as in spark_catalog.schema.table.
    """


class CatalogTableMoved(SourceError):
    """The table {name!r} is now at {found} in Spark's catalog, but this task was to use {path}. It wrote nothing there.
    Run it again: it then asks the catalog. In a task group, clear begin, too.
    """


class NotADeltaTable(SourceError):
    """{path} exists but is not a Delta table ({problem}). Convert it with CONVERT TO DELTA, or name another table."""


class SourceMoved(TableNotFound):
    """The table {name} no longer exists at {old_path}: it was renamed or moved, and exists at {path}. The next
    consumption of a stream on it continues there. To move a stream now, run airflow tidemark streams relocate STREAM
    --to {path}.
    """

    def __init__(self, *, hint: str = "", **facts: Any) -> None:
        super().__init__(hint=hint or f"The table was moved to {facts['path']}.", **facts)

    @property
    def to(self) -> TableRef:
        """The table at its new place."""
        facts = self.facts
        return TableRef(facts["name"], facts["path"], facts["table_id"], Addressing(facts["addressing"]))


class SourceCopied(TableNotFound):
    """The table no longer exists at {path}, and copies of it exist at {places}: choose one. For a stream, run airflow
    tidemark streams relocate STREAM --to its path. For a change stream, remove the other copies.
    """

    def __init__(self, *, hint: str = "", **facts: Any) -> None:
        super().__init__(hint=hint or f"Copies of the table exist at {facts['places']}.", **facts)


class RowTrackingDisabled(SourceError):
    """Row tracking is off on {table}, so its rows have no stable ids and no stream can read it. Enable it with
    ALTER TABLE {sql_name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true'), or create the stream with
    enable_row_tracking=True. Either makes up to three commits on the live table and upgrades its protocol. Writers that
    lack the rowTracking feature can no longer write to it, such as delta-rs up to 1.6 and Delta before 3.2.
    """


class UnsupportedTableFeature(SourceError):
    """{table} uses the Delta feature {feature!r}, which streams cannot read yet. {instead}"""


class IncompatibleSchemaChange(SourceError):
    """Between versions {start} and {end} of {table} the schema changed in a way that old rows cannot follow: {problem}.
    The stream is not stale: read it up to the version before the change with max_commits, then recreate it.
    """


class LogIncomplete(SourceError):
    """The log of {path} lacks version {version}, which is needed to read changes after version {start}: log cleanup
    removed it. The changes since then can no longer be read. {remedy}
    """

    def __init__(self, *, remedy: str = "Re-base or recreate a stream that needs them.", **facts: Any) -> None:
        super().__init__(remedy=remedy, **facts)


class CorruptLog(SourceError):
    """{file} cannot be read as part of a Delta log: {problem}. Restore the file from a backup, or from a
    copy of the table.
    """


class NotAFile(SourceError):
    """{path} is not a readable file: {problem}. It was not opened. Remove it, or restore the original file."""


class FileNotDescribed(SourceError):
    """A commit in ({start}, {end}] of {table} removes the file {file} without saying {what}. Delta's protocol lets a
    writer omit that, but these changes cannot be read without it. Advance the stream past that commit, and load its
    changes from the table.
    """


class RowsRenumbered(SourceError):
    """In ({start}, {end}] of {table}, rows changed and then got other row ids by an overwrite with dataChange=false.
    Version {version} may change them again. One window cannot tell that these are the same rows. Nothing was
    delivered. Read the stream up to version {last} with max_commits={commits} of an operator, such as
    ConsumeStreamOperator, since a notebook has none. The next window then has the rest. If an open transaction has the
    window, release or abandon it first. Read a range in two parts.
    """


class VersionVacuumed(SourceError):
    """Data files of {table} that the range ({start}, {end}] needs are gone ({count}, the first {first}): VACUUM has
    removed them. The changes in this range are lost for {reader}. {remedy} To keep the files that streams need, use
    VacuumTableOperator or lake.vacuum instead of VACUUM.
    """

    def __init__(self, *, reader: str = "this reader", remedy: str = _SKIP_OR_REBASE, **facts: Any) -> None:
        super().__init__(reader=reader, remedy=remedy, **facts)


class VersionNotFound(SourceError):
    """{table} has no version {version}; its versions go from {earliest} to {latest}. Name one of them."""


class LakeError(TidemarkError):
    """{message}"""


class StorageUnreachable(LakeError):
    """The storage did not return {place}: {problem}. The state of the table is unknown. Try again. If that does not
    help, check the storage options of the connection (endpoint, region) and the network.
    """


class StorageRefused(LakeError):
    """The storage refused {place}: {problem}. Check the keys in the storage options of the connection, and that they
    may list, read and write there.
    """


class CommitsMayBeLost(LakeError):
    """Table {table} is on S3, where Delta has no conditional writes: two drivers can overwrite each other's commits.
    Nothing was written. Name a log store that coordinates commits, for all writers
    (spark.delta.logStore.{scheme}.impl). Or declare that nobody else writes the table at that time (only_writer=True,
    --only-writer).
    """


class DataFileUnreadable(LakeError):
    """Spark could not read {file}, or a deletion vector of it: {problem}. The statement that reads it wrote nothing.
    Try again. If that does not help, the file is damaged or missing: restore it, or the table to a version without it.
    """
