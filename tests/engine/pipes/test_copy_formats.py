"""COPY INTO: files of XML, texts of another encoding, and files without a name of the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import CopyAborted

pytestmark = pytest.mark.spark

CSV = "COPY INTO db.t FROM @s FILES = ('{file}') FILE_FORMAT = (TYPE = CSV {options}) {tail}"
PARQUET = "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = PARQUET) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
NAMES = "PARSE_HEADER = TRUE"
BY_NAME = "MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"


def test_elements_of_xml_are_rows_by_the_names_of_their_members(desk: Desk) -> None:
    desk.table("id BIGINT, name STRING")
    desk.write("a.xml", "<all><row><id>1</id><NAME>Ann</NAME></row><row><id>x</id></row><row><id>3</id></row></all>")
    xml = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = XML ROW_TAG = 'row') {BY_NAME} ON_ERROR = CONTINUE"
    (done,) = desk.ask(xml)
    assert (done.status, done.rows_parsed, done.errors_seen) == ("PARTIALLY_LOADED", 3, 1)
    assert done.first_error_column_name == "id"
    assert desk.rows() == [(1, "Ann"), (3, None)]


def test_texts_of_another_encoding_and_headers_of_other_columns_load_nothing_by_mistake(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.write("latin.csv", "1,Zoë\n2,ann\n".encode("latin-1"))
    desk.write("header.csv", "key,label\n1,a\n")
    desk.write("half.csv", "label,ID\nx,7\n")
    (bad,) = desk.ask(
        CSV.format(file="latin.csv", options="", tail="ON_ERROR = CONTINUE VALIDATION_MODE = RETURN_ERRORS")
    )
    assert (bad.line, "UTF8" in bad.error) == (1, True)
    assert desk.copied(CSV.format(file="latin.csv", options="ENCODING = 'ISO-8859-1'", tail="")) == {
        "latin.csv": "LOADED"
    }
    with pytest.raises(CopyAborted, match=r"file header\.csv: .* the file has key, label, the table has id, name"):
        desk.lake.sql(CSV.format(file="header.csv", options=NAMES, tail=BY_NAME))
    assert desk.copied(CSV.format(file="half.csv", options=NAMES, tail=BY_NAME)) == {"half.csv": "LOADED"}
    assert desk.rows() == [(1, "Zoë"), (2, "ann"), (7, None)]


def test_parts_of_structs_find_their_columns_by_name_and_a_type_that_cannot_fit_is_the_error_of_its_file(
    desk: Desk,
) -> None:
    desk.table("id BIGINT, at STRUCT<city: STRING, zip: INT>, pairs ARRAY<STRUCT<a: INT, b: INT>>")
    pairs = pa.list_(pa.struct([("b", pa.int32()), ("a", pa.int32())]))
    rows = {"id": [1], "at": [{"zip": 5, "CITY": "Rome", "more": 1}], "pairs": pa.array([[{"b": 2, "a": 1}]], pairs)}
    pq.write_table(pa.table(rows), desk.files / "a.parquet")
    pq.write_table(pa.table({"id": [{"x": 1}]}), desk.files / "struct.parquet")
    pq.write_table(pa.table({"id": [date(2026, 1, 1)]}), desk.files / "date.parquet")
    pq.write_table(pa.table({"id": [2], "at": [{"other": 1}]}), desk.files / "other.parquet")
    found = {row.file: row for row in desk.ask(f"{PARQUET} ON_ERROR = SKIP_FILE")}
    assert {file: row.status for file, row in found.items()} == {
        "a.parquet": "LOADED",
        "date.parquet": "LOAD_FAILED",
        "other.parquet": "LOAD_FAILED",
        "struct.parquet": "LOAD_FAILED",
    }
    assert found["struct.parquet"].first_error_column_name == "id"
    assert "2026-01-01" in found["date.parquet"].first_error
    assert desk.rows(columns="id, at.city, at.zip, pairs[0].a, pairs[0].b") == [(1, "Rome", 5, 1, 2)]


def test_bytes_are_texts_or_their_digits_as_the_format_says(desk: Desk) -> None:
    desk.table("id BINARY, name STRING")
    pq.write_table(pa.table({"id": [b"\x01"], "name": [b"AZ"]}), desk.files / "a.parquet")
    load = PARQUET.replace("PARQUET)", "PARQUET BINARY_AS_TEXT = {})") + " FORCE = TRUE"
    for given in ("FALSE", "TRUE"):
        assert desk.copied(load.format(given)) == {"a.parquet": "LOADED"}
    assert desk.rows(columns="hex(id), name") == [("01", "415A"), ("01", "AZ")]


def _json(place: Path, name: str, value: int) -> None:
    place.write_text(f'{{"{name}": {value}}}\n{{"{name}": null}}\n')


def _csv(place: Path, name: str, value: int) -> None:
    place.write_text(f"{name}\n{value}\n\\N\n")


def _parquet(place: Path, name: str, value: int) -> None:
    pq.write_table(pa.table({name: pa.array([value, None], pa.int64())}), place)


FOREIGN = {
    "csv": (_csv, f"CSV {NAMES}"),
    "json": (_json, "JSON"),
    "parquet": (_parquet, "PARQUET"),
}


@pytest.mark.parametrize("how", ["CASE_INSENSITIVE", "CASE_SENSITIVE"])
@pytest.mark.parametrize("kind", list(FOREIGN))
def test_a_file_without_a_name_of_the_table_is_its_own_error_and_the_others_are_loaded(
    desk: Desk, kind: str, how: str
) -> None:
    write: Callable[[Path, str, int], None]
    write, options = FOREIGN[kind]
    desk.table("id BIGINT, name STRING")
    write(desk.files / f"a.{kind}", "other", 1)
    write(desk.files / f"b.{kind}", "id", 2)
    desk.lake.sql(
        f"CREATE PIPE db.p AUTO_INGEST = TRUE AS COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = {options})"
        f" MATCH_BY_COLUMN_NAME = {how} ON_ERROR = CONTINUE"
    )
    report = desk.lake.run_pipe("db.p")
    (bad,) = report.failed
    assert (report.files_loaded, bad.file, bad.status) == (1, f"a.{kind}", "LOAD_FAILED")
    assert str(bad.system_error).endswith("the file has other, the table has id, name")
    assert desk.rows() == [(2, None), (None, None)]
    assert desk.lake.run_pipe("db.p").files == 0
