"""The result of a segment's events for each key: one row a key, in which the last event counts.

A value that an event leaves out, as it stayed what it was, is the newest that the segment has of it. Events since the
row began count, under any key. If the segment has none, it is the target's value, under the key that the row had at the
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.replication.driver.columns import METADATA_COLUMN
from tidemark.replication.driver.lineages import ROOT, with_roots
from tidemark.replication.driver.values import texts_of, value_of, written_value
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.model.replication import InvalidValues, TableSchema
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["GOES", "Folding", "given_name", "key_name", "metadata_of", "old_key_name", "position_text", "value_name"]

GOES = "goes"  # the row is gone
_LAST = "last"
_MOVED_FROM = "moved_from"
_KEY = "key"


@dataclass(frozen=True)
class Folding:
    """How the events of an object are folded under one schema.

    `unchanged`: the columns that some event leaves out. `name`: of the object, in errors.
    """

    name: str
    schema: TableSchema
    unchanged: frozenset[str] = frozenset()
    invalid_values: InvalidValues = InvalidValues.FAIL

    @property
    def keys(self) -> tuple[SourceColumn, ...]:
        """The key's columns, in the order in which events tell them."""
        return tuple(column for column in self.schema.columns if column.key)

    def apart(self, column: SourceColumn) -> bool:
        """Whether the column's value may come from another event than the last."""
        return column.name in self.unchanged and not column.key

    def fold(self, events: DataFrame, *, moves: bool = False) -> DataFrame:
        """One row a key of `events`, which are INSERT, UPDATE and DELETE. `moves`: keys moved, and what they left out
        is looked for under the old ones.

        Columns: those of the key (`key_name`), `GOES`, each other column's value (`value_name`), the metadata column. A
        column that is `apart` also has whether the events have its value (`given_name`). With `moves` there is the key
        under which the target has the row (`old_key_name`), NULL if it is the same. Fails with what
        `named_invalid_value` names.
        """
        by = [key_name(place) for place in range(len(self.keys))]
        apart = [column for column in self.schema.columns if self.apart(column)]
        lives = with_roots(events) if moves else events
        keyed = lives.select("*", *self._keys_of(F.col(_KEY)))
        order = F.struct("position", "sequence")
        last = F.struct("change", "payload", "uuid", "source_timestamp", "position", "sequence")
        aggregates = [F.max_by(last, order).alias(_LAST)]
        if moves:
            aggregates += [F.max_by(ROOT, order).alias(ROOT), F.max_by("key", order).alias(_KEY)]
        elif apart:
            aggregates += self._latest_since(apart, order)
        folded = keyed.groupBy(*(quoted(name) for name in by)).agg(*aggregates)
        if moves:
            latest = lives.groupBy(ROOT).agg(F.lit(True).alias("known"), *self._latest(apart, order))
            moved_from = F.when(F.col("root.position").isNull() & (F.col("root.key") != F.col(_KEY)), F.col("root.key"))
            folded = folded.join(latest, ROOT, "left").withColumn(_MOVED_FROM, moved_from)
        return self._typed(folded, by, apart, moves=moves)

    def _keys_of(self, key: Column) -> list[Column]:
        """Rows are the same by the values of their keys, not by the texts: 0.0 is -0.0."""
        texts = F.from_json(key, "array<string>", {"mode": "FAILFAST"})
        return [
            self._written(texts[place], column, position_text()).alias(key_name(place))
            for place, column in enumerate(self.keys)
        ]

    def _latest_since(self, apart: Sequence[SourceColumn], order: Column) -> list[Column]:
        """Aggregates: each column's latest known value, and the event that created the current row of the key."""
        return [F.max(F.when(F.col("change") != "UPDATE", order)).alias("begun"), *self._latest(apart, order)]

    def _latest(self, apart: Sequence[SourceColumn], order: Column) -> list[Column]:
        texts = texts_of(F.col("payload"), [column.name for column in apart])
        left_out = F.coalesce("unchanged", F.array().cast("array<string>"))
        found = []
        for place, column in enumerate(apart):
            latest = F.when((F.col("change") != "DELETE") & ~F.array_contains(left_out, column.name), order)
            found.append(F.max(latest).alias(f"latest_{place}"))
            found.append(F.max_by(texts.getField(column.name), latest).alias(f"text_{place}"))
        return found

    def _typed(self, folded: DataFrame, by: Sequence[str], apart: Sequence[SourceColumn], *, moves: bool) -> DataFrame:
        others = [column for column in self.schema.columns if not column.key and not self.apart(column)]
        where = position_text(F.col(f"{_LAST}.position"), F.col(f"{_LAST}.sequence"))
        goes = F.col(f"{_LAST}.change") == "DELETE"
        parsed = folded.withColumn(
            "texts", F.when(~goes, texts_of(F.col(f"{_LAST}.payload"), [column.name for column in others]))
        )
        values = [
            self._written(F.col("texts").getField(column.name), column, where).alias(self._value_name(column))
            for column in others
        ]
        for place, column in enumerate(apart):
            latest = F.col(f"latest_{place}")
            since = F.lit(True) if moves else F.col("begun").isNull() | (latest >= F.col("begun"))
            is_given = latest.isNotNull() & since
            text = F.when(is_given & ~goes, F.col(f"text_{place}"))
            values.append(F.coalesce(is_given, F.lit(False)).alias(given_name(self._place(column))))
            values.append(self._written(text, column, where).alias(self._value_name(column)))
        old_keys: list[Column] = []
        if moves:
            texts = F.from_json(F.col(_MOVED_FROM), "array<string>", {"mode": "FAILFAST"})
            old_keys = [value_of(texts[n], column.type).alias(old_key_name(n)) for n, column in enumerate(self.keys)]
        said = metadata_of(F.col(f"{_LAST}.uuid"), F.col(f"{_LAST}.source_timestamp"))
        return parsed.select(*(F.col(quoted(name)) for name in by), goes.alias(GOES), *values, *old_keys, said)

    def values_in(self, texts: Column) -> list[Column]:
        """The values for the target, for each column of the schema, of an event and its `texts`; they have no names."""
        return [self._written(texts.getField(one.name), one, position_text()) for one in self.schema.columns]

    def _written(self, text: Column, column: SourceColumn, where: Column) -> Column:
        return written_value(text, column, invalid_values=self.invalid_values, object_name=self.name, position=where)

    def _place(self, column: SourceColumn) -> int:
        return self.schema.columns.index(column)

    def _value_name(self, column: SourceColumn) -> str:
        return value_name(self._place(column))


def key_name(place: int) -> str:
    """Of the key's column at that place of the key."""
    return f"key_{place}"


def old_key_name(place: int) -> str:
    """Of the same column of the key that the row moved from."""
    return f"old_key_{place}"


def value_name(place: int) -> str:
    """Of the value of the schema's column at that place."""
    return f"value_{place}"


def given_name(place: int) -> str:
    """Of whether the segment has that value."""
    return f"given_{place}"


def position_text(position: Column | None = None, sequence: Column | None = None) -> Column:
    """A position as people read it."""
    position = F.col("position") if position is None else position
    sequence = F.col("sequence") if sequence is None else sequence
    return F.concat(position, F.lit("/"), sequence.cast("string"))


def metadata_of(uuid: Column, source_timestamp: Column) -> Column:
    """The struct that says of a row which event it comes from; milliseconds since 1970."""
    return F.struct(uuid.alias("uuid"), F.unix_millis(source_timestamp).alias("source_timestamp")).alias(
        METADATA_COLUMN
    )
