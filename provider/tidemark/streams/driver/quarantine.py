"""A statement with a quarantine: its window in two parts, one for the target, one for the quarantine (decision 10).

The target is written first, and its commit says by what the rows were sorted. The quarantine is sorted by what that
commit says, no matter which attempt wrote it. So no row is in both and none in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.delivery.driver.append import prepare_append
from tidemark.delivery.driver.exactly_once import (
    Delivering,
    find_delivery,
    open_target,
    partition_columns,
    target_schema,
)
from tidemark.delivery.driver.merge import prepare_merge
from tidemark.delivery.driver.past_rows import rows_as_of
from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.delivery.driver.quarantine_table import missing_features, require_compatible
from tidemark.delivery.driver.sorting import BAD, BROKEN, Sorting, sort_rows
from tidemark.delivery.model.quarantine import AT, CONSTRAINTS, FROM, RUN, STREAM, TARGET, TO, Split
from tidemark.delivery.planning.delivery import Delivery, Finding
from tidemark.errors import StatementRefused
from tidemark.jobs.schemas import struct_type
from tidemark.model.statements import Statement, WriteAs
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["Quarantine"]

ROW_AS_TEXT = "__tidemark_row"
AS_TEXT = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass
class Quarantine:
    """The two statements of one write. `at`: the time of this attempt. Sorted rows are kept until `close`."""

    streams: PinnedStreams
    delivering: Delivering
    target: Statement
    quarantine: Statement
    at: datetime

    def __post_init__(self) -> None:
        self._sorted: dict[Split, DataFrame] = {}

    def prepare_target(self) -> PreparedWrite:
        """Make ready to write the good rows, by the target's constraints of now.

        If the quarantine has its rows already, the good rows are the others. That only happens when the target was lost
        and is written once more. Raises what append and merge raise, and SplitUnreadable.
        """
        log = open_target(self.target, self.delivering.options)
        split = Split(log.head(), self.at)
        before = find_delivery(self.delivering, self.quarantine)
        if before.finding is Finding.DELIVERED:
            good = self._rows().transform(self._not_in, before)
        else:
            good = self._part(split, bad=False)
        schema = self._sorting(split).schema
        if self.target.write.write_as is WriteAs.MERGE:
            keys, partitioned = self.target.write.keys, partition_columns(log)
            prepared = prepare_merge(good, self.target, schema, keys, partitioned=partitioned)
        else:
            prepared = prepare_append(good, self.target, schema)
        return replace(prepared, split=split)

    def prepare_quarantine(self) -> PreparedWrite:
        """Make ready to write the rows that are bad by then. Raises QuarantineDoesNotFit."""
        log = open_target(self.quarantine, self.delivering.options)
        rows = self._rows().schema
        table = self.quarantine.target
        require_compatible(rows, target_schema(log), name=table.name, target=self.target.target.name)
        for feature in missing_features(rows, log):
            supported = f"SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')"
            self.streams.session.sql(f"ALTER TABLE {path_name(table.path)} {supported}")
        return PreparedWrite(run=self._write_bad)

    def close(self) -> None:
        """Give back what was kept in memory."""
        while self._sorted:
            self._sorted.popitem()[1].unpersist()

    def _write_bad(self) -> None:
        """Sorted by what the target's commit says, which may be another attempt's."""
        done = find_delivery(self.delivering, self.target)
        if done.finding is not Finding.DELIVERED or done.split is None:
            problem = f"{self.target.target.name} does not say by what the rows of its write were sorted"
            raise StatementRefused(problem=problem, sql=self.quarantine.write.target)
        rows = self._part(done.split, bad=True, more=(BROKEN,))
        said = rows.select(*_as_they_are(rows, self._rows().columns), *self._about(done.split))
        writer = said.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.save(self.quarantine.target.path)

    def _about(self, split: Split) -> tuple[Column, ...]:
        window = self.streams.window(self._source)
        at = F.lit(split.at).cast("timestamp")
        return (
            F.col(BROKEN).alias(CONSTRAINTS),
            F.lit(window.stream_name).alias(STREAM),
            F.lit(self.target.write.target).alias(TARGET),
            F.lit(str(self.delivering.key)).alias(RUN),
            F.lit(window.start).cast("bigint").alias(FROM),
            F.lit(window.end).cast("bigint").alias(TO),
            at.alias(AT),
        )

    @property
    def _source(self) -> str:
        source = self.target.write.source
        if source is None:
            problem = "a write with a quarantine needs the stream that it reads"
            raise StatementRefused(problem=problem, sql=self.target.write.target)
        return source

    def _rows(self) -> DataFrame:
        return self.streams.frame(self._source)

    def _sorting(self, split: Split) -> Sorting:
        log = open_target(self.target, self.delivering.options)
        metadata = log.state(split.version).metadata
        return Sorting(self.target, log, metadata, struct_type(metadata.schema_json), split)

    def _part(self, split: Split, *, bad: bool, more: tuple[str, ...] = ()) -> DataFrame:
        """The window is read once for both parts, and the executors keep as much of it as they have room for."""
        if split not in self._sorted:
            self._sorted[split] = sort_rows(self._rows(), self._sorting(split)).persist()
        whole = self._sorted[split]
        part = whole.where(F.col(BAD) if bad else ~F.col(BAD))
        return part.select(*(quoted(name) for name in self._rows().columns), *more)

    def _not_in(self, rows: DataFrame, before: Delivery) -> DataFrame:
        """Without the rows that this run has put into the quarantine; rows of equal content have gone the same way."""
        log, name = open_target(self.quarantine, self.delivering.options), self.quarantine.target.name
        if before.version is None:
            raise AssertionError("a delivered statement has a commit")
        table = rows_as_of(rows.sparkSession, log, before.version, table=name)
        of_this_write = (
            F.col(quoted(RUN)).eqNullSafe(str(self.delivering.key))
            & F.col(quoted(STREAM)).eqNullSafe(self.streams.window(self._source).stream_name)
            & F.col(quoted(TARGET)).eqNullSafe(self.target.write.target)
        )
        there = table.where(of_this_write).select(_as_text(table, rows.columns).alias(ROW_AS_TEXT)).distinct()
        return rows.join(there, _as_text(rows, rows.columns) == F.col(ROW_AS_TEXT), "left_anti")


def _as_they_are(rows: DataFrame, names: Sequence[str]) -> list[Column]:
    """The stream's columns without what its source says of them: comments, lengths, how they are made."""
    return [F.col(quoted(name)).alias(name, metadata={}) for name in names]


def _as_text(frame: DataFrame, names: Sequence[str]) -> Column:
    known = {name.lower() for name in frame.columns}
    columns = [F.col(quoted(name)) if name.lower() in known else F.lit(None) for name in names]
    return F.to_json(F.struct(*(column.alias(name) for column, name in zip(columns, names, strict=True))), AS_TEXT)
