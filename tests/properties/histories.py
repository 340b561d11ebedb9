"""Random histories of real Delta tables: what a user's writers may do between two looks of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["Shape", "Table", "act", "create", "random_shape"]


@dataclass(frozen=True)
class Shape:
    """What kind of table."""

    partitioned: bool
    column_mapping: bool
    deletion_vectors: bool
    feed: bool

    @property
    def value(self) -> str:
        name = "v ä,.%;'`{}=(\")" if self.column_mapping else "v'.%ä`\""
        return name.replace(".", "").replace("`", "") if self.feed else name  # Delta's feed cannot write these

    @property
    def part(self) -> str:
        return "p, q=%" if self.column_mapping else "p%é"


@dataclass
class Table:
    """A table in the making; `done` is what was done, for the message of a failure."""

    spark: SparkSession
    path: Path
    shape: Shape
    chance: random.Random
    version: int = 0
    extra: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    feed: bool = False

    @property
    def name(self) -> str:
        return f"delta.{quoted(str(self.path))}"

    def sql(self, text: str) -> None:
        self.done.append(text)
        self.spark.sql(text)
        found = max(int(file.stem) for file in (self.path / "_delta_log").glob("*.json") if file.stem.isdigit())
        self.version = found


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def random_shape(chance: random.Random) -> Shape:
    return Shape(chance.random() < 0.5, chance.random() < 0.5, chance.random() < 0.6, chance.random() < 0.5)


def create(spark: SparkSession, path: Path, shape: Shape, chance: random.Random) -> Table:
    table = Table(spark, path, shape, chance, feed=shape.feed)
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": str(shape.deletion_vectors).lower()}
    if shape.column_mapping:
        properties["delta.columnMapping.mode"] = "name"
    if shape.feed:
        properties["delta.enableChangeDataFeed"] = "true"
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    partitioned = f"PARTITIONED BY ({quoted(shape.part)})" if shape.partitioned else ""
    table.sql(
        f"CREATE TABLE {table.name} (id BIGINT, {quoted(shape.value)} STRING, d DOUBLE, m MAP<STRING, INT>, "
        f"s ARRAY<STRUCT<x: INT, y: MAP<INT, STRING>>>, {quoted(shape.part)} STRING) USING delta {partitioned} "
        f"TBLPROPERTIES ({listed})"
    )
    _insert(table)
    return table


def act(table: Table) -> None:
    """One more operation; it may turn out to change nothing, and then makes no version."""
    table.chance.choices(list(OPERATIONS), weights=list(OPERATIONS.values()))[0](table)


def _key(table: Table) -> int:
    return table.chance.randrange(8)


def _text(table: Table) -> str:
    return table.chance.choice(["'a'", "'b'", "'a '", "'é'", "NULL"])


def _part(table: Table) -> str:
    return table.chance.choice(["'x %/é'", "'a=b''c'", "NULL", "'#?'"])


def _row(table: Table) -> str:
    number = table.chance.choice(["double('NaN')", "0.5D", "CAST(NULL AS DOUBLE)"])
    mapped = table.chance.choice(["map('k', 1, 'l', 2)", "map('l', 2, 'k', 1)", "CAST(NULL AS MAP<STRING, INT>)"])
    nested = table.chance.choice(
        [
            "array(named_struct('x', 1, 'y', map(1, 'p', 2, 'q')))",
            "CAST(NULL AS ARRAY<STRUCT<x: INT, y: MAP<INT, STRING>>>)",
        ]
    )
    return f"({_key(table)}L, {_text(table)}, {number}, {mapped}, {nested}, {_part(table)})"


def _rows(table: Table) -> str:
    rows = [_row(table) for _ in range(table.chance.randint(1, 4))]
    if table.chance.random() < 0.3:
        rows.append(rows[0])
    return ", ".join(rows)


def _columns(table: Table) -> str:
    return f"(id, {quoted(table.shape.value)}, d, m, s, {quoted(table.shape.part)})"


def _where(table: Table) -> str:
    return table.chance.choice(
        [
            f"id = {_key(table)}",
            f"id % 3 = {table.chance.randrange(3)}",
            f"{quoted(table.shape.part)} <=> {_part(table)}",
        ]
    )


def _insert(table: Table) -> None:
    table.sql(f"INSERT INTO {table.name} {_columns(table)} VALUES {_rows(table)}")


def _update(table: Table) -> None:
    what = table.chance.choice(
        [
            f"{quoted(table.shape.value)} = {_text(table)}",
            "id = id + 1",
            "d = d",
            "m = map('l', 2, 'k', 1)",
            f"{quoted(table.shape.part)} = {_part(table)}",
            *(f"{quoted(name)} = {table.chance.randrange(3)}" for name in table.extra),
        ]
    )
    table.sql(f"UPDATE {table.name} SET {what} WHERE {_where(table)}")


def _delete(table: Table) -> None:
    table.sql(f"DELETE FROM {table.name} WHERE {_where(table)}")


def _merge(table: Table) -> None:
    keys = table.chance.sample(range(10), 3)
    rows = ", ".join(f"({key}L, {_text(table)}, {table.chance.choice(['true', 'false'])})" for key in keys)
    value = quoted(table.shape.value)
    table.sql(
        f"MERGE INTO {table.name} t USING (SELECT * FROM VALUES {rows} AS s(id, v, gone)) s ON t.id = s.id "
        f"WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET t.{value} = s.v "
        f"WHEN NOT MATCHED THEN INSERT (id, {value}) VALUES (s.id, s.v)"
    )


def _optimize(table: Table) -> None:
    table.sql(f"OPTIMIZE {table.name}")


def _truncate(table: Table) -> None:
    table.sql(f"DELETE FROM {table.name}")


def _overwrite(table: Table) -> None:
    table.sql(f"INSERT OVERWRITE {table.name} {_columns(table)} VALUES {_rows(table)}")


def _overwrite_part(table: Table) -> None:
    value, part = _part(table), quoted(table.shape.part)
    rows = f"(SELECT * FROM VALUES {_rows(table)} AS r{_columns(table)})"
    extra = "".join(f", NULL AS {quoted(name)}" for name in table.extra)
    given = f"SELECT id, {quoted(table.shape.value)}, d, m, s, {value} AS {part}{extra} FROM {rows}"
    table.sql(f"INSERT INTO {table.name} REPLACE WHERE {part} <=> {value} {given}")


def _restore(table: Table) -> None:
    table.sql(f"RESTORE TABLE {table.name} TO VERSION AS OF {table.chance.randint(1, table.version)}")
    given = {"id", table.shape.value, "d", "m", "s", table.shape.part}
    table.extra = [name for name in table.spark.table(table.name).columns if name not in given]


def _add_column(table: Table) -> None:
    name = f"extra{len(table.done)}"
    table.sql(f"ALTER TABLE {table.name} ADD COLUMNS ({name} INT)")
    table.extra.append(name)


def _rename_column(table: Table) -> None:
    if table.extra and table.shape.column_mapping:
        old = table.chance.choice(table.extra)
        new = f"renamed{len(table.done)}"
        table.sql(f"ALTER TABLE {table.name} RENAME COLUMN {old} TO {new}")
        table.extra[table.extra.index(old)] = new


def _drop_column(table: Table) -> None:
    if table.extra and table.shape.column_mapping:
        gone = table.chance.choice(table.extra)
        table.sql(f"ALTER TABLE {table.name} DROP COLUMN {gone}")
        table.extra.remove(gone)


def _reorder_columns(table: Table) -> None:
    table.sql(f"ALTER TABLE {table.name} ALTER COLUMN d {table.chance.choice(['FIRST', 'AFTER id'])}")


def _switch_feed(table: Table) -> None:
    if table.shape.feed:
        table.feed = not table.feed
        setting = f"'delta.enableChangeDataFeed' = '{str(table.feed).lower()}'"
        table.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ({setting})")


OPERATIONS: dict[Callable[[Table], None], int] = {
    _insert: 4,
    _update: 5,
    _delete: 3,
    _merge: 4,
    _optimize: 3,
    _truncate: 1,
    _overwrite: 1,
    _overwrite_part: 1,
    _restore: 2,
    _add_column: 2,
    _rename_column: 1,
    _drop_column: 1,
    _reorder_columns: 1,
    _switch_feed: 1,
}
