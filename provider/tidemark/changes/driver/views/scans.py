"""A term as a DataFrame: each scan has the rows of its role, reduced to possible partners."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.bases import ROW, SIGNED, BaseRows
from tidemark.changes.driver.views.changed import Changed
from tidemark.changes.driver.views.settings import queried
from tidemark.changes.driver.views.values import Values
from tidemark.changes.planning.views.keys import key_links
from tidemark.changes.planning.views.partition import PartitionKey
from tidemark.changes.planning.views.parts import numbered
from tidemark.changes.planning.views.terms import ID, SCAN, SIGN, Role, Scan, Term
from tidemark.model.streams import StreamMode
from tidemark.model.views import ViewQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Reading"]


@dataclass
class Reading:
    """The frames of one window of a view. All terms share one read of each base table's changes."""

    spark: SparkSession
    query: ViewQuery
    bases: Sequence[BaseRows]
    changed: Mapping[int, Changed]
    mode: StreamMode
    _rows: dict[tuple[int, int], DataFrame] = field(default_factory=dict)

    def term(self, term: Term) -> DataFrame:
        """The rows of a term, from changed rows and their possible partners."""
        assert term.delta is not None
        return self._answer(term, self._partners(term.delta, numbered(self.query).bases[term.delta]))

    def whole(self, term: Term, keys: Sequence[PartitionKey]) -> DataFrame:
        """The rows of the query at one end: those that a change can touch, if one of `keys` selects them; else all."""
        cuts = (cut for key in keys if (cut := self._touched(key)) is not None)
        return self._answer(term, next(cuts, {}))

    def _answer(self, term: Term, cuts: Mapping[int, Column]) -> DataFrame:
        frames = {f"s{scan.number}": self._frame(scan, cuts.get(scan.number)) for scan in term.scans}
        if len([scan for scan in term.scans if scan.role is not Role.NOTHING]) > 1 and term.delta is not None:
            name = f"s{term.delta}"
            frames[name] = self._small(frames[name], term)
        text = term.text.replace("{", "{{").replace("}", "}}")
        text = re.sub(rf"{SCAN}(\d+)", r"{s\1}", text)
        return queried(self.spark, text, frames, self.query.settings)

    def _small(self, frame: DataFrame, term: Term) -> DataFrame:
        """Changed rows, broadcast to their partners if they are few."""
        (base,) = [scan.base for scan in term.scans if scan.number == term.delta]
        return frame if self.changed[base].known is None else frame.hint("broadcast")

    def _partners(self, delta: int, base: int) -> dict[int, Column]:
        """For each other scan, the condition under which its rows join with a changed row."""
        found: dict[int, Column] = {}
        scans = numbered(self.query).bases
        for link in key_links(self.query, delta, [each.columns for each in self.bases]):
            values = self.changed[base].values(link.changed)
            condition = values.hold(self.bases[scans[link.scan]].schema, link.column) if values else None
            if condition is not None:
                known = found.get(link.scan)
                found[link.scan] = condition if known is None else known & condition
        return found

    def _touched(self, key: PartitionKey) -> dict[int, Column] | None:
        """For each scan of the key, the condition that a changed row has its key; None if the changes are unknown."""
        scans = numbered(self.query).bases
        values: Values | None = None
        for scan, column in key.scans.items():
            if scans[scan] in self.changed:
                mine = self.changed[scans[scan]].values(column)
                values = mine if values is None or mine is None else values.join(mine)
                if values is None:
                    return None
        if values is None:
            return None
        cuts = {n: values.hold(self.bases[scans[n]].schema, column, null=True) for n, column in key.scans.items()}
        known = {number: cut for number, cut in cuts.items() if cut is not None}
        return known if len(known) == len(cuts) else None

    def _frame(self, scan: Scan, cut: Column | None) -> DataFrame:
        base = self.bases[scan.base]
        if scan.role is Role.NOTHING:
            empty = base.schema.add(ROW, "long")
            found = self.spark.createDataFrame([], empty)
        elif scan.role is Role.CHANGED:
            found = self.changed[scan.base].frame.withColumnRenamed(SIGNED, SIGN)
        else:
            found = self._whole(scan, cut)
        return found.withColumnRenamed(ROW, f"{ID}{scan.number}")

    def _whole(self, scan: Scan, cut: Column | None) -> DataFrame:
        window = self.bases[scan.base].window
        changed = self.changed.get(scan.base)
        if self.mode is StreamMode.APPEND_ONLY:
            found = self._version(scan.base, window.start, cut)
            if scan.role is Role.NEW and changed is not None:
                found = found.unionByName(_where(changed.frame.drop(SIGNED), cut))
            return found
        is_start = scan.role is Role.OLD and changed is not None
        return self._version(scan.base, window.start if is_start else window.end, cut)

    def _version(self, number: int, version: int, cut: Column | None) -> DataFrame:
        if (number, version) not in self._rows:
            self._rows[number, version] = self.bases[number].rows(self.spark, version)
        found = _where(self._rows[number, version], cut)
        self.bases[number].require_files_of(found)
        return found


def _where(frame: DataFrame, cut: Column | None) -> DataFrame:
    return frame if cut is None else frame.where(cut)
