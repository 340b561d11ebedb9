"""The sides of a plan with few rows, read by the driver. A query of Spark over whole files costs many times as much.

1. Row ids and commits of all rows are read, from narrow columns or from the log alone.
2. Equal states of both sides cancel.
3. The rest is paired by row id, and only its images are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tidemark.changes.driver.few_images import images_of
from tidemark.changes.driver.few_states import State, UnlikeSpark, states_of, without_equal_ones
from tidemark.changes.planning.sets.few import MOST_IMAGES
from tidemark.changes.planning.sets.forms import ADDED, REMOVED
from tidemark.changes.planning.sets.plan import Candidate, ChangePlan, Netting
from tidemark.jobs.schemas import struct_type
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["few_sides"]

_NUMBERS = ("version", "row_id", "times_old", "times_new")


class _Sides(NamedTuple):
    """The states of one row that are left on each side."""

    version: int
    row_id: int
    times_old: int
    times_new: int
    old: State | None
    new: State | None


def few_sides(spark: SparkSession, log: DeltaLog, plan: ChangePlan) -> DataFrame | None:
    """The sides of `plan` as local rows: version, row_id, times_old, times_new (bigint), old and new (structs). None if
    it has too many rows, or a file that PyArrow may read otherwise than Spark. Raises CorruptLog, StorageUnreachable,
    StorageRefused.
    """
    if not plan.in_driver or find_spec("numpy") is None:
        return None
    each = plan.candidate is Candidate.EACH
    try:
        states = states_of(log, plan)
        if plan.netting is not Netting.ONE_SIDE:
            states = without_equal_ones(states, by_version=each)
        if states.num_rows > MOST_IMAGES:
            return None
        rows = [State(*row) for row in zip(*(column.to_pylist() for column in states.columns), strict=True)]
        sides = list(_alone(rows) if plan.netting is Netting.ONE_SIDE else _paired(rows, each=each))
        table = _table(log, plan, sides)
    except (pa.ArrowException, UnlikeSpark, OSError):  # OSError: a missing file, or a footer that is garbage
        return None  # Spark reads them, or says why it cannot
    return spark.createDataFrame(table, _schema(plan))


def _alone(rows: Sequence[State]) -> Iterator[_Sides]:
    for row in rows:
        old, new = (row if row.side == side else None for side in (REMOVED, ADDED))
        yield _Sides(row.version, row.row_id, int(old is not None), int(new is not None), old, new)


def _paired(rows: Sequence[State], *, each: bool) -> Iterator[_Sides]:
    groups: dict[tuple[int, int], list[State]] = {}
    for row in rows:
        groups.setdefault((row.version if each else 0, row.row_id), []).append(row)
    for (version, row_id), states in groups.items():
        counts: Counter[int] = Counter()
        for state in states:
            counts[state.commit] += state.side
        times_old, times_new = (sum(max(count * side, 0) for count in counts.values()) for side in (REMOVED, ADDED))
        if times_old or times_new:
            old, new = (
                next((state for state in states if state.side == side and counts[state.commit] * side > 0), None)
                for side in (REMOVED, ADDED)
            )
            yield _Sides(version, row_id, times_old, times_new, old, new)


def _table(log: DeltaLog, plan: ChangePlan, sides: Sequence[_Sides]) -> pa.Table:
    numbers = {name: pa.array([getattr(one, name) for one in sides], pa.int64()) for name in _NUMBERS}
    old, new = images_of(log, plan, ([one.old for one in sides], [one.new for one in sides]))
    return pa.table({**numbers, "old": old, "new": new})


def _schema(plan: ChangePlan) -> Any:
    from pyspark.sql.types import LongType, StructType

    image = struct_type(plan.metadata.schema_json)
    for field in image.fields:
        field.nullable = True
    schema = StructType()
    for name in _NUMBERS:
        schema = schema.add(name, LongType())
    return schema.add("old", image).add("new", image)
