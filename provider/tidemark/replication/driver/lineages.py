"""The events of the same row of a source, though its key moved: earlier events have values that later ones leave out.

A row is known by its key and by the event since which it has that key. This is its INSERT, or none for a row that the
target has. A moved key begins another life of the row under the new key; the lives are linked, back to the row's
beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ROOT", "KeyMove", "roots_of", "with_roots"]

ROOT = "root"  # struct of key, position and sequence, the last two NULL for a row that the target has
_ROOTS = "key string, position string, sequence bigint, root struct<key: string, position: string, sequence: bigint>"
Life: TypeAlias = "tuple[str, str | None, int | None]"


class KeyMove(NamedTuple):
    """A key that moved: the life that began, and the one that ended."""

    began: Life
    ended: Life


def roots_of(moves: Iterable[KeyMove]) -> dict[Life, Life]:
    """The first life of the row, for each life that a move began."""
    before = {move.began: move.ended for move in moves}
    found: dict[Life, Life] = {}
    for began in sorted(before, key=lambda life: (life[1] or "", life[2] or 0)):
        ended = before[began]
        found[began] = found.get(ended, ended)
    return found


def with_roots(events: DataFrame) -> DataFrame:
    """`events` with the column ROOT. While this runs, the moves that leave something out are held in the driver's
    memory.
    """
    life = F.struct("position", "sequence")
    so_far = Window.partitionBy("key").orderBy("position", "sequence")
    since = F.max(F.when(F.col("change") == "INSERT", life)).over(so_far)
    lives = events.withColumn("since", since)
    moved = (F.col("change") == "INSERT") & F.col("old_key").isNotNull() & (F.size("unchanged") > 0)
    began = lives.where(moved).select(
        "key", "position", "sequence", "old_key", (F.col("sequence") - 1).alias("half")
    )  # the DELETE half stands right before
    ended = lives.where(F.col("change") == "DELETE").select(
        F.col("key").alias("old_key"), "position", F.col("sequence").alias("half"), F.col("since").alias("old_since")
    )
    rows = began.join(ended, ["old_key", "position", "half"])
    moved_keys = rows.select(
        "key", "position", "sequence", "old_key", "old_since.position", "old_since.sequence"
    ).collect()
    moves = [KeyMove(tuple(row[:3]), tuple(row[3:])) for row in moved_keys]
    roots = [(*began, root) for began, root in roots_of(moves).items()]
    known = events.sparkSession.createDataFrame(roots, _ROOTS).select(
        F.col("key").alias("of_key"), F.struct("position", "sequence").alias("of_since"), ROOT
    )
    same = (F.col("key") == F.col("of_key")) & (F.col("since") == F.col("of_since"))
    own = F.struct("key", F.col("since.position").alias("position"), F.col("since.sequence").alias("sequence"))
    joined = lives.join(known, same, "left")
    return joined.withColumn(ROOT, F.coalesce(ROOT, own)).drop("of_key", "of_since", "since")
