"""Random histories of real Delta tables: what a user's writers may do between two looks of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

__all__ = ["OF_ROWS", "Operations", "Shape", "Table", "act", "create", "random_shape"]


@dataclass(frozen=True)
class Shape:
    """What kind of table."""

    layout: str  # "", "partitioned" or "clustered"
    mapping: str  # column mapping: "none", "name" or "id"
    deletion_vectors: bool
    feed: bool
    modern: bool  # columns of types that came with table features, and in-commit timestamps
    cloned: bool  # a shallow clone, whose first files are another table's
    checkpoints: str  # "classic" or "v2"

    @property
    def column_mapping(self) -> bool:
        return self.mapping != "none"

    @property
    def value(self) -> str:
        name = "v ä,.%;'`{}=(\")" if self.column_mapping else "v'.%ä`\""
        return name.replace(".", "").replace("`", "") if self.feed else name  # Delta's feed cannot write these

    @property
    def part(self) -> str:
        return "p, q=%" if self.column_mapping else "p%é"


Operations = dict[Callable[["Table"], None], int]


@dataclass
class Table:
    """A table in the making; `done` is what was done, for the message of a failure."""

    spark: SparkSession
    path: Path
    shape: Shape
    chance: random.Random
    version: int = 0
    extra: list[str] = field(default_factory=list)
    nested: bool = False  # s.element has a field z
    mapped: bool = False  # columns can be renamed and dropped
    restorable_from: int = 1  # Delta restores no schema that it could not change back to
    done: list[str] = field(default_factory=list)
    feed: bool = False

    @property
    def name(self) -> str:
        return f"delta.{quoted(str(self.path))}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it was made with."""
        modern = ("t", "w") if self.shape.modern else ()
        return ("id", self.shape.value, "d", "m", "s", *modern, self.shape.part)

    def sql(self, text: str) -> None:
        self.did(text, lambda: self.spark.sql(text))

    def did(self, text: str, action: Callable[[], object]) -> None:
        """Run and note an operation, and see the version it made."""
        self.done.append(text)
        action()
        found = max(int(file.stem) for file in (self.path / "_delta_log").glob("*.json") if file.stem.isdigit())
        self.version = found


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def random_shape(chance: random.Random) -> Shape:
    return Shape(
        layout=chance.choice(["", "partitioned", "partitioned", "clustered"]),
        mapping=chance.choice(["none", "none", "name", "id"]),
        deletion_vectors=chance.random() < 0.6,
        feed=chance.random() < 0.5,
        modern=chance.random() < 0.4,
        cloned=chance.random() < 0.2,
        checkpoints=chance.choice(["classic", "v2"]),
    )


def create(spark: SparkSession, path: Path, shape: Shape, chance: random.Random) -> Table:
    """A table with a few rows; version 0 of a clone has them, another table's version 1."""
    table = Table(spark, path, shape, chance, feed=shape.feed, mapped=shape.column_mapping)
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in _properties(shape).items())
    layout = {
        "": "",
        "partitioned": f"PARTITIONED BY ({quoted(shape.part)})",
        "clustered": "CLUSTER BY (id)",
    }[shape.layout]
    modern = "t TIMESTAMP_NTZ, w VARIANT, " if shape.modern else ""
    table.sql(
        f"CREATE TABLE {table.name} (id BIGINT, {quoted(shape.value)} STRING, d DOUBLE, m MAP<STRING, INT>, "
        f"s ARRAY<STRUCT<x: INT, y: MAP<INT, STRING>>>, {modern}{quoted(shape.part)} STRING) USING delta {layout} "
        f"TBLPROPERTIES ({listed})"
    )
    _insert(table)
    if shape.cloned:
        source, table.path = table.name, path.with_name(f"{path.name} clone")
        table.sql(f"CREATE TABLE {table.name} SHALLOW CLONE {source}")
    return table


def _properties(shape: Shape) -> dict[str, str]:
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": str(shape.deletion_vectors).lower(),
        "delta.enableTypeWidening": "true",
        "delta.checkpointPolicy": shape.checkpoints,
        "delta.checkpointInterval": "4",
    }
    if shape.column_mapping:
        properties["delta.columnMapping.mode"] = shape.mapping
    if shape.feed:
        properties["delta.enableChangeDataFeed"] = "true"
    if shape.modern:
        properties["delta.enableInCommitTimestamps"] = "true"
    return properties


def act(table: Table, operations: Operations | None = None) -> None:
    """One more operation; it may turn out to change nothing, and then makes no version."""
    among = operations or {**OF_ROWS, **OF_SCHEMAS}
    table.chance.choices(list(among), weights=list(among.values()))[0](table)


def _key(table: Table) -> int:
    return table.chance.randrange(8)


def _text(table: Table) -> str:
    return table.chance.choice(["'a'", "'b'", "'a '", "'é'", "NULL"])


def _part(table: Table) -> str:
    return table.chance.choice(["'x %/é'", "'a=b''c'", "NULL", "'#?'"])


def _row(table: Table) -> str:
    number = table.chance.choice(["double('NaN')", "0.5D", "CAST(NULL AS DOUBLE)"])
    mapped = table.chance.choice(["map('k', 1, 'l', 2)", "map('l', 2, 'k', 1)", "CAST(NULL AS MAP<STRING, INT>)"])
    deep = ("x: INT, y: MAP<INT, STRING>, z: INT", ", 'z', 7") if table.nested else ("x: INT, y: MAP<INT, STRING>", "")
    nested = table.chance.choice(
        [f"array(named_struct('x', 1, 'y', map(1, 'p', 2, 'q'){deep[1]}))", f"CAST(NULL AS ARRAY<STRUCT<{deep[0]}>>)"]
    )
    modern = f"{_time(table)}, {_variant(table)}, " if table.shape.modern else ""
    return f"({_key(table)}L, {_text(table)}, {number}, {mapped}, {nested}, {modern}{_part(table)})"


def _time(table: Table) -> str:
    return table.chance.choice(["TIMESTAMP_NTZ'2026-03-29 02:30:00.000001'", "TIMESTAMP_NTZ'1600-01-01 00:00:00'"])


def _variant(table: Table) -> str:
    return table.chance.choice(["parse_json('{\"a\": [1, null]}')", "parse_json('\"é\"')", "CAST(NULL AS VARIANT)"])


def _rows(table: Table) -> str:
    rows = [_row(table) for _ in range(table.chance.randint(1, 4))]
    if table.chance.random() < 0.3:
        rows.append(rows[0])
    return ", ".join(rows)


def _columns(table: Table) -> str:
    return f"({', '.join(quoted(name) for name in table.columns)})"


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
            *(["s = transform(s, e -> named_struct('x', e.x, 'y', e.y, 'z', 5))"] if table.nested else []),
            *([f"t = {_time(table)}", f"w = {_variant(table)}"] if table.shape.modern else []),
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
    found = {name: quoted(name) for name in table.columns[:-1]} | {table.columns[-1]: f"{value} AS {part}"}
    listed = ", ".join(found.get(name, "NULL") for name in table.spark.table(table.name).columns)
    table.sql(f"INSERT INTO {table.name} REPLACE WHERE {part} <=> {value} SELECT {listed} FROM {rows}")


def _restore(table: Table) -> None:
    if table.version > table.restorable_from:
        table.sql(
            f"RESTORE TABLE {table.name} TO VERSION AS OF {table.chance.randint(table.restorable_from, table.version)}"
        )
        _look(table)


def _look(table: Table) -> None:
    """What the schema is now."""
    schema = table.spark.table(table.name).schema
    table.extra = [name for name in schema.names if name not in table.columns]
    table.nested = "z:int" in schema["s"].dataType.simpleString()


def _add_column(table: Table) -> None:
    name = f"extra{len(table.done)}"
    table.sql(f"ALTER TABLE {table.name} ADD COLUMNS ({name} INT)")
    table.extra.append(name)


def _add_nested_field(table: Table) -> None:
    if not table.nested:
        table.sql(f"ALTER TABLE {table.name} ADD COLUMNS (s.element.z INT)")
        table.nested = True


def _append_with_a_new_column(table: Table) -> None:
    name = f"merged{len(table.done)}"
    text, part = f"string({_text(table)})", f"string({_part(table)})"
    found = {"id": f"{_key(table)}L", table.shape.value: text, table.shape.part: part, name: "1"}
    rows = table.spark.sql("SELECT " + ", ".join(f"{value} AS {quoted(column)}" for column, value in found.items()))
    writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
    table.did(f"append of a row with a new column {name}", lambda: writer.save(str(table.path)))
    table.extra.append(name)


def _overwrite_with_another_layout(table: Table) -> None:
    if table.shape.layout != "clustered" and not (table.shape.feed and table.mapped):  # Delta writes no feed then
        rows = table.spark.table(table.name).where(_where(table)).drop(*table.extra[:1])
        by = table.chance.choice([(), (table.shape.part,), ("id",)])
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy(*by)
        table.did(f"overwrite with another schema, partitioned by {by}", lambda: writer.save(str(table.path)))
        table.restorable_from = table.version
        _look(table)


def _widen_column(table: Table) -> None:
    narrow = [name for name in table.extra if table.spark.table(table.name).schema[name].dataType == IntegerType()]
    if narrow:
        table.sql(f"ALTER TABLE {table.name} ALTER COLUMN {table.chance.choice(narrow)} TYPE BIGINT")
        table.restorable_from = table.version


def _turn_column_mapping_on(table: Table) -> None:
    if not table.mapped:
        table.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        table.mapped, table.restorable_from = True, table.version


def _rename_column(table: Table) -> None:
    if table.extra and table.mapped:
        old = table.chance.choice(table.extra)
        new = f"renamed{len(table.done)}"
        table.sql(f"ALTER TABLE {table.name} RENAME COLUMN {old} TO {new}")
        table.extra[table.extra.index(old)] = new


def _drop_column(table: Table) -> None:
    if table.extra and table.mapped:
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


OF_ROWS: Operations = {
    _insert: 4,
    _update: 5,
    _delete: 3,
    _merge: 4,
    _optimize: 3,
    _truncate: 1,
    _overwrite: 1,
    _overwrite_part: 1,
    _restore: 2,
}
OF_SCHEMAS: Operations = {
    _add_column: 2,
    _add_nested_field: 1,
    _append_with_a_new_column: 1,
    _overwrite_with_another_layout: 1,
    _widen_column: 1,
    _turn_column_mapping_on: 1,
    _rename_column: 1,
    _drop_column: 1,
    _reorder_columns: 1,
    _switch_feed: 1,
}
