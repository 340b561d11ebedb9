"""A table without a key as a mirror: each row is in the target as often as in the source, duplicates included.

For each change the log has the whole row that went, and the whole row that came. A row that went is removed by its
values; of equal rows it does not matter which one. A row of the target is identified by its uuid, which no other has,
so the target changes by one MERGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from tidemark.errors import ObjectFailed
from tidemark.jobs.raised_facts import facts_in, raised_with
from tidemark.replication.driver.columns import METADATA_COLUMN
from tidemark.replication.driver.fold import Folding, metadata_of, value_name
from tidemark.replication.driver.target_table import Target
from tidemark.replication.driver.values import texts_of
from tidemark.replication.driver.wide_rows import kept
from tidemark.replication.planning.events import COMES, GOES, Change
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["merge_bag", "missing_rows"]

_SIGN = "TidemarkRowsAreMissing"
_HALF = "the log has only one half of an update"
_UUID, _GOES, _COUNT, _NTH = "row_uuid", "row_goes", "row_count", "row_nth"


def merge_bag(session: SparkSession, target: Target, events: DataFrame, folding: Folding, *, widest: int) -> None:
    """Take out what went and put in what came, in one commit. `widest`: bytes of a row.

    Fails with what `named_invalid_value` and `missing_rows` name; then nothing is written.
    """
    rows = _changed_rows(events, folding)
    values = _value_names(folding)
    changed = _goes(session, target, rows, folding).unionByName(_comes(rows, values))
    with kept(session, changed, widest) as changes:
        _merge(target, changes, folding)


def missing_rows(text: str, position: str, remedy: str, *, applied: object) -> ObjectFailed | None:
    """The error of rows that are to go and that the target does not have, if it is in what Spark says."""
    facts = facts_in(_SIGN, text)
    if facts is None:
        return None
    return ObjectFailed(
        object=facts["object"], problem=facts["problem"], position=position, remedy=remedy, applied=applied
    )


def _changed_rows(events: DataFrame, folding: Folding) -> DataFrame:
    """A row for each half: its values, `sign` (1: it comes), `order` and the metadata."""
    columns = folding.schema.columns
    changes = events.where(F.col("change").isin(*COMES, *GOES, Change.UPDATE.value))
    facts = F.struct(F.lit(folding.name).alias("object"), F.lit(_HALF).alias("problem"))
    halved = F.when(F.col("change") == Change.UPDATE.value, raised_with(_SIGN, facts, f": {_HALF}").cast("int"))
    sign = halved.when(F.col("change").isin(*COMES), 1).otherwise(-1)
    texts = changes.withColumn("texts", texts_of(F.col("payload"), [column.name for column in columns]))
    values = [value.alias(value_name(place)) for place, value in enumerate(folding.values_in(F.col("texts")))]
    order = F.struct("position", "sequence").alias("order")
    return texts.select(*values, sign.alias("sign"), order, metadata_of(F.col("uuid"), F.col("source_timestamp")))


def _comes(rows: DataFrame, values: Sequence[str]) -> DataFrame:
    """Of rows that came oftener than they went, the latest this many."""
    alike = Window.partitionBy(*values)
    net = rows.withColumn(_COUNT, F.sum("sign").over(alike)).where((F.col("sign") > 0) & (F.col(_COUNT) > 0))
    latest = F.row_number().over(alike.orderBy(F.col("order").desc()))
    kept = net.withColumn(_NTH, latest).where(F.col(_NTH) <= F.col(_COUNT))
    uuid = F.col(f"{METADATA_COLUMN}.uuid").alias(_UUID)
    return kept.select(F.lit(False).alias(_GOES), uuid, *values, METADATA_COLUMN)


def _goes(session: SparkSession, target: Target, rows: DataFrame, folding: Folding) -> DataFrame:
    """For rows that went oftener than they came, this many rows of the target, which has all of them."""
    values = _value_names(folding)
    gone = rows.groupBy(*values).agg((-F.sum("sign")).alias(_COUNT)).where(F.col(_COUNT) > 0)
    held = session.read.format("delta").load(target.ref.path)
    names = [f"held_{place}" for place in range(len(values))]
    held = held.select(
        F.col(f"{METADATA_COLUMN}.uuid").alias(_UUID),
        *(F.col(quoted(one.name)).alias(name) for one, name in zip(folding.schema.columns, names, strict=True)),
    )
    same = [F.col(value).eqNullSafe(F.col(name)) for value, name in zip(values, names, strict=True)]
    alike = Window.partitionBy(*values)
    found = gone.join(held, reduce(Column.__and__, same), "left").select(
        *values, _COUNT, _UUID,
        F.count(_UUID).over(alike).alias("there"),
        F.row_number().over(alike.orderBy(_UUID)).alias(_NTH),
    )  # fmt: skip
    problem = F.concat(
        F.col(_COUNT).cast("string"), F.lit(" equal rows are to be deleted, and the target has "),
        F.col("there").cast("string"),
    )  # fmt: skip
    facts = F.struct(F.lit(folding.name).alias("object"), problem.alias("problem"))
    missing = raised_with(_SIGN, facts, ": rows are missing")
    uuid = F.when(F.col("there") < F.col(_COUNT), missing.cast("string")).otherwise(F.col(_UUID))
    metadata = F.lit(None).cast(rows.schema[METADATA_COLUMN].dataType).alias(METADATA_COLUMN)
    taken = found.where(F.col(_NTH) <= F.col(_COUNT))
    return taken.select(F.lit(True).alias(_GOES), uuid.alias(_UUID), *values, metadata)


def _merge(target: Target, changed: DataFrame, folding: Folding) -> None:
    columns = zip(folding.schema.columns, _value_names(folding), strict=True)
    inserted = {quoted(column.name): F.col(f"changes.{name}") for column, name in columns}
    inserted[METADATA_COLUMN] = F.col(f"changes.{METADATA_COLUMN}")
    one = F.col(f"{target.name}.{METADATA_COLUMN}.uuid") == F.col(f"changes.{_UUID}")
    merge = changed.alias("changes").mergeInto(target.name, one)
    goes = F.col(f"changes.{_GOES}")
    merge.whenMatched(goes).delete().whenNotMatched(~goes).insert(inserted).merge()


def _value_names(folding: Folding) -> list[str]:
    return [value_name(place) for place in range(len(folding.schema.columns))]
