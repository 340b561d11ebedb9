"""Changes of a view from its signed rows: equal rows cancel, and the rest is paired by the row's id (R29, R74)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.changes.driver.content import same_content
from tidemark.changes.planning.views.terms import ID, SIGN, column_name
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["images", "inserted", "net_changes"]

_CHANGE = "tidemark_change"
_STATES = "tidemark_states"
_LETTERS = 32  # of the digest: as many bits as in a UUID


def net_changes(
    rows: DataFrame, ids: tuple[str, ...], kind: StructType, sources: Mapping[str, str], partitions: int
) -> DataFrame:
    """The smallest change set of signed rows (`ids`, SIGN, the view's columns by `column_name`): the columns of `kind`,
    then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID.

    A row id has at most one content at each end. After equal contents have cancelled, it has one old image, one new, or
    both. More would be a defect, and fail the query. `sources` has the table id of those `ids` that are row ids.
    """
    shown = _image(kind)
    states = (
        rows.select(*ids, F.struct(F.col(SIGN).alias("sign"), shown.alias("image")).alias("state"))
        .repartition(partitions, *ids)
        .groupBy(*ids)
        .agg(F.collect_list("state").alias(_STATES))
    )
    changes = states.select(_row_id(ids, sources).alias(ROW_ID), F.explode(_changes(kind)).alias(_CHANGE))
    return _shown(changes, kind)


def inserted(rows: DataFrame, ids: tuple[str, ...], kind: StructType, sources: Mapping[str, str]) -> DataFrame:
    """Every row as an INSERT; columns as in `net_changes`."""
    change = _change("INSERT", False, _image(kind)).alias(_CHANGE)
    return _shown(rows.select(_row_id(ids, sources).alias(ROW_ID), change), kind)


def images(kind: StructType) -> list[Column]:
    """The view's columns under their names, from those by `column_name`."""
    fields = enumerate(kind.fields)
    return [F.col(column_name(number)).cast(field.dataType).alias(field.name) for number, field in fields]


def _image(kind: StructType) -> Column:
    columns = [F.col(column_name(n)).cast(field.dataType).alias(column_name(n)) for n, field in enumerate(kind.fields)]
    return F.struct(*columns)


def _shown(changes: DataFrame, kind: StructType) -> DataFrame:
    image = F.col(f"{_CHANGE}.image")
    return changes.select(
        *(image.getField(column_name(number)).alias(name) for number, name in enumerate(kind.names)),
        F.col(f"{_CHANGE}.action").alias(ACTION),
        F.col(f"{_CHANGE}.is_update").alias(IS_UPDATE),
        F.col(quoted(ROW_ID)).alias(ROW_ID),
    )


def _row_id(ids: tuple[str, ...], sources: Mapping[str, str]) -> Column:
    """The first half of the parts' SHA-256: for each its number, then table id and row id, or the group's key.

    The set of parts identifies the arm of a UNION ALL. The numbers distinguish scans of a table that is joined with
    itself.
    """
    parts = [
        F.when(
            F.col(name).isNotNull(),
            F.concat(F.lit(f"{name.removeprefix(ID)}:{sources.get(name, 'key')}:"), F.col(name).cast("string")),
        )
        for name in ids
    ]
    return F.substring(F.sha2(F.concat_ws("|", *parts), 256), 1, _LETTERS)


def _changes(kind: StructType) -> Column:
    """The array of changes from the states of one row id."""
    form = StructType()
    for number, field in enumerate(kind.fields):
        form = form.add(column_name(number), field.dataType)

    def left(sign: int) -> Column:
        return F.filter(F.col(_STATES), lambda state: _total(state, form) * F.lit(sign) > 0)

    old, new = left(-1), left(1)
    wrong = (
        F.exists(F.col(_STATES), lambda state: F.abs(_total(state, form)) > 1) | _differ(old, form) | _differ(new, form)
    )
    problem = F.lit("Tidemark: internal error: more than one image at an end for a row of a view")
    first, last = (side.getItem(0).getField("image") for side in (old, new))
    cases = [
        (wrong, F.raise_error(problem)),
        ((F.size(old) == 0) & (F.size(new) == 0), F.array()),
        (F.size(old) == 0, F.array(_change("INSERT", False, last))),
        (F.size(new) == 0, F.array(_change("DELETE", False, first))),
    ]
    pair = F.array(_change("DELETE", True, first), _change("INSERT", True, last))
    (condition, value), *more = cases
    return reduce(lambda chain, case: chain.when(*case), more, F.when(condition, value)).otherwise(pair)


def _total(state: Column, form: StructType) -> Column:
    """The signed count of a state's content among all states of the row id."""
    signs = F.transform(
        F.col(_STATES),
        lambda other: F.when(
            same_content(other.getField("image"), state.getField("image"), form), other.getField("sign")
        ).otherwise(F.lit(0)),
    )
    return F.aggregate(signs, F.lit(0), lambda total, sign: total + sign)


def _differ(states: Column, form: StructType) -> Column:
    first = states.getItem(0).getField("image")
    return F.exists(states, lambda state: ~same_content(state.getField("image"), first, form))


def _change(action: str, is_update: bool, image: Column) -> Column:
    return F.struct(F.lit(action).alias("action"), F.lit(is_update).alias("is_update"), image.alias("image"))
