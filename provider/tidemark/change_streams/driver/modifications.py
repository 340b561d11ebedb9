"""From the images of changed rows to modifications: keys, new and old values as JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.change_streams.driver.values import NO_VALUES, json_object, json_of_chosen, type_code
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, ModType, ValueCaptureType, WatchedTable
from tidemark.changes.driver.content import same_content

__all__ = ["RANKS", "Shape", "column_types", "modifications", "shape_of"]

RANKS: Mapping[ModType, int] = {ModType.DELETE: 0, ModType.UPDATE: 1, ModType.INSERT: 2}  # in a transaction
_WITH_WHOLE_ROW = (ValueCaptureType.NEW_ROW, ValueCaptureType.NEW_ROW_AND_OLD_VALUES)
_WITH_OLD_VALUES = (ValueCaptureType.OLD_AND_NEW_VALUES, ValueCaptureType.NEW_ROW_AND_OLD_VALUES)
_GENERATED = "delta.generationExpression"


@dataclass(frozen=True)
class Shape:
    """The columns of a table that a change stream shows: its keys and the watched ones, as the table has them.

    `ordinals`: name → place in the table, from 1.
    """

    keys: tuple[StructField, ...]
    watched: tuple[StructField, ...]
    ordinals: Mapping[str, int]

    def column_type(self, field: StructField) -> str:
        """The JSON object of one column in column_types."""
        return json.dumps(
            {
                "name": field.name,
                "type": type_code(field.dataType),
                "is_primary_key": field in self.keys,
                "ordinal_position": self.ordinals[field.name],
            },
            separators=(",", ":"),
            ensure_ascii=False,
        )

    @property
    def columns(self) -> list[StructField]:
        """Keys and watched columns, by ordinal position."""
        return sorted((*self.keys, *self.watched), key=lambda field: self.ordinals[field.name])


def shape_of(schema: StructType, watched: WatchedTable) -> Shape:
    """The columns that a watched table shows under a schema of it. Columns that the schema lacks are left out; its keys
    must exist.

    All columns, if none are listed, are those that Delta does not generate from others.
    """
    by_name = {field.name.lower(): field for field in schema.fields}
    keys = tuple(by_name[key.lower()] for key in watched.keys)
    if watched.columns is None:
        shown = [field for field in schema.fields if _GENERATED not in field.metadata]
    else:
        shown = [by_name[name.lower()] for name in watched.columns if name.lower() in by_name]
    ordinals = {field.name: place for place, field in enumerate(schema.fields, 1)}
    return Shape(keys, tuple(field for field in shown if field not in keys), ordinals)


def modifications(images: DataFrame, shape: Shape, options: ChangeStreamOptions) -> DataFrame:
    """One row for each modification of `images` (version, old, new), with the columns version, kind, changed, keys,
    new_values and old_values.

    `kind` is a rank of RANKS. `changed` has a 1 or a 0 for each watched column, in their order: 1 if the modification
    is of that column. A changed key is a DELETE and an INSERT; an update that changes no watched column is none.
    """
    old, new = F.col("old"), F.col("new")
    flags = [
        F.when(same_content(old.getField(field.name), new.getField(field.name), field.dataType), "0").otherwise("1")
        for field in shape.watched
    ]
    with_keys = images.select(
        "version",
        "old",
        "new",
        json_object(old, shape.keys).alias("old_keys"),
        json_object(new, shape.keys).alias("new_keys"),
        F.when(old.isNotNull() & new.isNotNull(), F.concat(*flags) if flags else F.lit("")).alias("changed"),
    )
    delete, update, insert = (make(shape, options.value_capture_type) for make in (_delete, _update, _insert))
    cases = [
        (old.isNull(), F.array(insert)),
        (new.isNull(), F.array(delete)),
        (F.col("old_keys") != F.col("new_keys"), F.array(delete, insert)),
        (F.col("changed").contains("1"), F.array(update)),
    ]
    (first, value), *more = cases
    found = reduce(lambda chain, case: chain.when(*case), more, F.when(first, value))
    exploded = with_keys.select("version", F.explode(found).alias("mod")).select("version", "mod.*")
    excluded = [RANKS[kind] for kind in _excluded(options)]
    return exploded.where(~F.col("kind").isin(excluded)) if excluded else exploded


def column_types(shape: Shape, options: ChangeStreamOptions) -> Column:
    """The column_types of a modification of that shape, by `kind` and `changed`. It is longer than most rows, so it is
    made when they are written.
    """
    if options.value_capture_type in _WITH_WHOLE_ROW:
        return _every(shape)
    is_there = {field.name: _is_changed(place) for place, field in enumerate(shape.watched, 1)}
    return F.when(F.col("kind") == RANKS[ModType.UPDATE], _chosen_types(shape, is_there)).otherwise(_every(shape))


def _excluded(options: ChangeStreamOptions) -> list[ModType]:
    excluded = {
        ModType.INSERT: options.exclude_insert,
        ModType.UPDATE: options.exclude_update,
        ModType.DELETE: options.exclude_delete,
    }
    return [kind for kind, is_excluded in excluded.items() if is_excluded]


def _insert(shape: Shape, capture: ValueCaptureType) -> Column:
    whole = json_object(F.col("new"), shape.watched)
    return _modification(ModType.INSERT, _all_of(shape), F.col("new_keys"), whole, F.lit(NO_VALUES))


def _delete(shape: Shape, capture: ValueCaptureType) -> Column:
    old = json_object(F.col("old"), shape.watched) if capture in _WITH_OLD_VALUES else F.lit(NO_VALUES)
    return _modification(ModType.DELETE, _all_of(shape), F.col("old_keys"), F.lit(NO_VALUES), old)


def _update(shape: Shape, capture: ValueCaptureType) -> Column:
    chosen = [(field, _is_changed(place)) for place, field in enumerate(shape.watched, 1)]
    whole = capture in _WITH_WHOLE_ROW
    new = json_object(F.col("new"), shape.watched) if whole else json_of_chosen(F.col("new"), chosen)
    old = json_of_chosen(F.col("old"), chosen) if capture in _WITH_OLD_VALUES else F.lit(NO_VALUES)
    return _modification(ModType.UPDATE, F.col("changed"), F.col("new_keys"), new, old)


def _is_changed(place: int) -> Column:
    return F.substring("changed", place, 1) == "1"


def _all_of(shape: Shape) -> Column:
    return F.lit("1" * len(shape.watched))


def _every(shape: Shape) -> Column:
    return F.lit("[" + ",".join(shape.column_type(field) for field in shape.columns) + "]")


def _chosen_types(shape: Shape, is_there: Mapping[str, Column]) -> Column:
    """Keys, and of the watched columns those of this modification."""
    parts = [
        F.when(is_there[field.name], text) if field.name in is_there else text
        for field in shape.columns
        for text in (F.lit(shape.column_type(field)),)
    ]
    return F.concat(F.lit("["), F.array_join(F.array(*parts), ","), F.lit("]"))


def _modification(kind: ModType, changed: Column, keys: Column, new: Column, old: Column) -> Column:
    return F.struct(
        F.lit(RANKS[kind]).alias("kind"),
        changed.alias("changed"),
        keys.alias("keys"),
        new.alias("new_values"),
        old.alias("old_values"),
    )
