"""The answer of READ_<stream>, printed: each record is a line; Spark prints nested arrays instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from pyspark.sql import Row

from tidemark.change_streams.driver.records import CHANGE_RECORD, CHILDREN, DATA, HEARTBEAT, KINDS
from tidemark.change_streams.model.partition_table import short_token, short_tokens

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["printed_in_lines"]

_SHOWN = 3  # modifications of a record


def printed_in_lines(frame: DataFrame, title: str) -> DataFrame:
    """The same DataFrame of the one column of READ_<stream>, which prints as `title`. `show` prints each record in a
    line, and so do the rows that it collects. DataFrames that are made of it print as any other.
    """
    frame.__class__ = _in_lines(type(frame))
    frame._title = title  # type: ignore[attr-defined]
    return frame


class _Lines:
    """Mixed into the class of a DataFrame, which Spark Classic and Spark Connect have each of their own."""

    _title: str

    def __repr__(self) -> str:
        return f"ChangeRecords[{self._title}]"

    def collect(self) -> list[Row]:
        return [_row(row) for row in super().collect()]  # type: ignore[misc]

    def take(self, num: int) -> list[Row]:
        return [_row(row) for row in super().take(num)]  # type: ignore[misc]

    def tail(self, num: int) -> list[Row]:
        return [_row(row) for row in super().tail(num)]  # type: ignore[misc]

    def toLocalIterator(self, prefetchPartitions: bool = False) -> Iterator[Row]:
        return (_row(row) for row in super().toLocalIterator(prefetchPartitions))  # type: ignore[misc]

    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """The first records. `truncate`: to this many characters, True: 160; `vertical` is of no use here."""
        found = self.take(n + 1)
        most = 160 if truncate is True else int(truncate)
        for row in found[:n]:
            line = repr(row)
            print(line if most == 0 or len(line) <= most else f"{line[: most - 1]}…")
        if len(found) > n:
            print(f"only the first {n} records")


def _in_lines(kind: type[DataFrame]) -> type[DataFrame]:
    return cast("type[DataFrame]", type("ChangeRecords", (_Lines, kind), {"__module__": __name__}))


class _Line(Row):
    """A Row that prints as a line."""


class _Answer(_Line):
    def __repr__(self) -> str:
        return "; ".join(map(repr, self[CHANGE_RECORD]))


class _Record(_Line):
    def __repr__(self) -> str:
        return "; ".join(repr(one) for kind in KINDS for one in self[kind])


class _Data(_Line):
    def __repr__(self) -> str:
        mods = [_mod(mod) for mod in self["mods"]]
        more = f"; and {len(mods) - _SHOWN} more" if len(mods) > _SHOWN else ""
        return (
            f"{_time(self['commit_timestamp'])} {self['mod_type']} {self['table_name']} "
            + "; ".join(mods[:_SHOWN])
            + more
        )


class _Heartbeat(_Line):
    def __repr__(self) -> str:
        return f"{_time(self['timestamp'])} heartbeat"


class _Children(_Line):
    def __repr__(self) -> str:
        return f"{_time(self['start_timestamp'])} child partitions: " + ", ".join(map(repr, self["child_partitions"]))


class _Child(_Line):
    def __repr__(self) -> str:
        parents = short_tokens(self["parent_partition_tokens"])
        return f"{short_token(self['token'])} of {parents}" if parents else short_token(self["token"])


_OF_KIND: Mapping[str, type[_Line]] = {DATA: _Data, HEARTBEAT: _Heartbeat, CHILDREN: _Children}


def _row(row: Row) -> Row:
    return _as(_Answer, row, {CHANGE_RECORD: [_record(record) for record in row[CHANGE_RECORD]]})


def _record(record: Row) -> Row:
    return _as(_Record, record, {kind: [_one(kind, one) for one in record[kind]] for kind in KINDS})


def _one(kind: str, record: Row) -> Row:
    nested = {}
    if kind == CHILDREN:
        nested = {"child_partitions": [_as(_Child, child, {}) for child in record["child_partitions"]]}
    return _as(_OF_KIND[kind], record, nested)


def _as(kind: type[_Line], row: Row, nested: Mapping[str, list[Row]]) -> Row:
    """The same row, of this class, and so are the rows in it."""
    values = [nested.get(name, value) for name, value in zip(row.__fields__, row, strict=True)]
    made = tuple.__new__(kind, values)
    made.__fields__ = row.__fields__
    return made


def _mod(mod: Row) -> str:
    values = [text for text in (mod["old_values"], mod["new_values"]) if text not in (None, "{}")]
    return f"{mod['keys']}: {' -> '.join(values)}" if values else str(mod["keys"])


def _time(time: datetime) -> str:
    """Spark's times have no zone, and are those of this process."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
