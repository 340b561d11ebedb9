"""Values, names and rows that a commit could not write or would write wrongly: each is an answer of its insert."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver.batches import Batch, batch_of
from tidemark.channels.driver.kernel import DataFile
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.parquet import write_files
from tidemark.channels.driver.quarantine import bad_rows
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.quarantine import QUARANTINE_COLUMNS, quarantine_rows
from tidemark.errors import InvalidArgument

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LONGS = {"type": "array", "elementType": "long", "containsNull": True}
MAP = {"type": "map", "keyType": "long", "valueType": "string", "valueContainsNull": True}
STRUCT = {"type": "struct", "fields": [field("a", "long")]}
ORDERS = spec(field("id", "long"), field("name", "string"))


def one(kind: Any, value: Any) -> Batch:
    return batch_of([{"v": value}], spec(field("v", kind)), UTC, NOW)


def written(rows: Any, table: TableSpec, folder: Path) -> list[DataFile]:
    batch = batch_of(rows, table, UTC, NOW)
    assert batch.errors == ()
    return write_files(batch.rows, table, LakeFiles(f"file://{folder}", {}), token="t", now=NOW)


@pytest.mark.parametrize("value", [pd.NaT, pd.NA])
@pytest.mark.parametrize(
    "kind", ["long", "string", "date", "timestamp", "timestamp_ntz", "variant", LONGS, MAP, STRUCT]
)
def test_a_missing_value_of_pandas_is_null(kind: Any, value: Any) -> None:
    assert one(kind, value).rows.to_pylist() == [{"v": None}]
    assert one("variant", {"a": [value]}).rows.to_pylist() == [{"v": '{"a":[null]}'}]


def test_scalars_of_numpy_are_values() -> None:
    assert one("boolean", np.True_).rows.to_pylist() == [{"v": True}]
    assert one("variant", [np.False_, np.int64(1)]).rows.to_pylist() == [{"v": "[false,1]"}]
    assert one(LONGS, np.int64(5)).rows.to_pylist() == [{"v": [5]}]
    assert one(LONGS, np.array([1, 2])).rows.to_pylist() == [{"v": [1, 2]}]
    assert one(LONGS, np.datetime64("2026-01-01")).errors[0].kind is RowErrorKind.WRONG_TYPE


@pytest.mark.parametrize("value", [10**5_000, Fraction(10**400, 3)], ids=["long", "large"])
@pytest.mark.parametrize("kind", ["long", "double", "variant", "timestamp", "binary", LONGS, MAP, STRUCT])
def test_a_number_that_no_column_takes_is_an_error_of_its_row(kind: Any, value: Any) -> None:
    (error,) = one(kind, value).errors
    assert len(str(error)) < 200


def test_a_text_has_all_digits_of_a_long_number() -> None:
    assert one("string", 10**5_000).rows.to_pylist() == [{"v": "1" + "0" * 5_000}]
    assert one("variant", Decimal(10**5_000)).errors[0].kind is RowErrorKind.OUT_OF_RANGE


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"\uDC00":1}', r'["\ud83d\u0041"]'])
def test_half_a_character_in_the_json_of_a_variant_is_an_error_of_its_row(text: str) -> None:
    assert one("variant", text).errors[0].kind is RowErrorKind.INVALID_VALUE


def test_a_character_of_two_escapes_stays_one() -> None:
    assert one("variant", r'{"a":"\ud83d\ude00","b":1.50}').rows.to_pylist() == [{"v": '{"a":"😀","b":1.50}'}]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin")])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([10_000_000], pa.int32()).cast(pa.date32()),
        pa.array([-10_000_000], pa.int32()).cast(pa.date32()),
        *(
            pa.array([at], pa.int64()).cast(pa.timestamp(unit))
            for unit in ("s", "ms", "us")
            for at in (2**62, -(2**62))
        ),
        pa.array([253_402_300_800]).cast(pa.timestamp("s", "UTC")),
        pa.array(["0000-01-01"]),
    ],
)
def test_a_time_of_arrow_outside_the_years_1_to_9999_is_an_error_of_its_row(kind: str, zone: Any, column: Any) -> None:
    batch = batch_of(pa.table({"v": column}), spec(field("v", kind)), zone, NOW)
    assert (batch.rows.num_rows, len(batch.errors)) == (0, 1)


def test_the_first_and_the_last_time_are_taken(tmp_path: Path) -> None:
    table = spec(field("d", "date"), field("t", "timestamp"), field("n", "timestamp_ntz"))
    for day, at in ((date.min, "0001-01-01T00:00:00"), (date.max, "9999-12-31T23:59:59.999999")):
        (file,) = written(pa.table({"d": [day], "t": [f"{at}Z"], "n": [at]}), table, tmp_path / day.isoformat())
        assert f'"d":"{day.isoformat()}"' in file.stats


def test_years_have_four_digits_in_statistics_and_partitions(tmp_path: Path) -> None:
    plain = spec(field("t", "timestamp"), field("n", "timestamp_ntz"))
    rows = [{"t": "0098-02-03T04:05:06.5Z", "n": "0001-01-01"}]
    (file,) = written(rows, plain, tmp_path)
    assert '"minValues":{"t":"0098-02-03T04:05:06.500Z","n":"0001-01-01T00:00:00.000"}' in file.stats
    parts = spec(field("t", "timestamp"), field("n", "timestamp_ntz"), field("x", "long"), partitioned_by=("t", "n"))
    (file,) = written(rows, parts, tmp_path)
    assert file.partition == {"t": "0098-02-03T04:05:06.500000Z", "n": "0001-01-01 00:00:00.000000"}


@pytest.mark.parametrize("text", ["x" * 300, "é" * 200, "a\0b", "../../x", "."])
def test_a_partition_may_have_any_text(text: str, tmp_path: Path) -> None:
    table = spec(field("day", "string"), field("id", "long"), partitioned_by=("day",))
    (file,) = written([{"day": text, "id": 1}], table, tmp_path)
    assert file.partition == {"day": text}
    assert (tmp_path / file.path).resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "column", [pa.array([1.0, 1e20]), pa.array([date(2026, 1, 1)]), pa.array([b"ab"]), pa.array(["a", None])]
)
def test_a_dictionary_of_arrow_is_as_its_plain_values(column: pa.Array) -> None:
    for kind in ("string", "double", "date", "binary"):
        table = spec(field("v", kind))
        plain = batch_of(pa.table({"v": column}), table, UTC, NOW)
        coded = batch_of(pa.table({"v": column.dictionary_encode()}), table, UTC, NOW)
        assert (coded.rows, coded.errors) == (plain.rows, plain.errors)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "ID": 2}],
        [{"id": 1, '"id"': 1}],
        b'{"id": 1, "Id": 2}',
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "ID"]),
    ],
)
def test_a_row_that_has_a_column_twice_is_an_error(rows: Any) -> None:
    (error,) = batch_of(rows, ORDERS, UTC, NOW).errors
    assert (error.column.strip('"').upper(), error.message) == ("ID", "the row has it twice")


def test_a_key_twice_within_a_value_is_an_error_of_its_row() -> None:
    doubled = pa.array([[(1, "a"), (1, "b")]], pa.map_(pa.int64(), pa.string()))
    batch = batch_of(pa.table({"v": doubled}), spec(field("v", MAP)), UTC, NOW)
    assert batch.errors[0].kind is RowErrorKind.INVALID_VALUE
    assert one(STRUCT, {"a": 1, "A": 2}).errors[0].kind is RowErrorKind.INVALID_VALUE
    assert one(MAP, [([1], "a")]).errors[0].kind is RowErrorKind.WRONG_TYPE


@pytest.mark.parametrize("name", ["x" * 100_000, "\ud800"])
def test_an_error_shows_names_that_writers_chose_shortened_and_in_utf_8(name: str) -> None:
    unknown = batch_of([{name: 1, "other": 2}], ORDERS, UTC, NOW).errors[0]
    within = [one(STRUCT, {name: 1}).errors[0], one(MAP, {name: "a"}).errors[0]]
    for error in (unknown, *within):
        assert len(str(error).encode()) < 4_000


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pd.DataFrame({"id": [1, "a"]}),
        pd.DataFrame({"name": ["\ud800"]}),
        pd.Series([1], name="id"),
    ],
)
def test_a_frame_that_arrow_cannot_take_is_refused(frame: Any) -> None:
    with pytest.raises(InvalidArgument, match="rows="):
        batch_of(frame, ORDERS, UTC, NOW)


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([{"id": 10**5_000, "name": "a"}], '{"id": "a value that Python does not show (int)", "name": "a"}'),
        ([{"id": nested(5_000)}], '{"id": "a value that Python does not show (list)"}'),
        ([{"id": {(1, 2): 3}}], '{"id": "{(1, 2): 3} (dict)"}'),
        ([{"id": "x", "\ud800": "\ud801"}], '{"id": "x", "?": "?"}'),
        (pa.table({"x": pa.array([10_000_000], pa.int32()).cast(pa.date32())}), '{"x": "a date32[day] that Python'),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), '{"id": 1, "id": 2}'),
    ],
    ids=["digits", "deep", "keys", "surrogates", "beyond", "doubled"],
)
def test_each_bad_row_has_a_text_for_its_quarantine(rows: Any, text: str) -> None:
    (bad,) = bad_rows(rows, batch_of(rows, ORDERS, UTC, NOW), ORDERS, "1")
    assert bad.text.startswith(text)
    (kept,) = quarantine_rows([bad], table="db.orders", channel="C", now=NOW)
    quarantine = spec(*(field(name, kind) for name, kind in QUARANTINE_COLUMNS.items()))
    assert batch_of([kept], quarantine, UTC, NOW).errors == ()
