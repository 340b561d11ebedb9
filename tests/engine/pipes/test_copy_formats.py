"""COPY INTO: files of XML, texts of another encoding, and files without a name of the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import CopyAborted, NotYetSupported

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


def test_members_of_documents_become_columns_without_blanks_and_the_texts_that_stand_for_null(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.write("a.json", '{"id": 1, "name": " Ann "}\n{"id": "NA", "name": "NA "}\n{"id": -1, "name": null}\n')
    options = "TRIM_SPACE = TRUE NULL_IF = ('NA', '-1')"
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = JSON {options}) {BY_NAME}"
    assert desk.copied(load) == {"a.json": "LOADED"}
    assert desk.rows() == [(1, "Ann"), (None, None), (None, None)]
    for option in ("TRIM_SPACE = TRUE", "NULL_IF = ('NA')"):
        with pytest.raises(NotYetSupported, match=option.split()[0]):
            desk.lake.sql(
                f"COPY INTO db.t FROM (SELECT $1:id, $1:name FROM @s) FILE_FORMAT = (TYPE = JSON {option}) FORCE = TRUE"
            )


def test_an_empty_array_has_no_row_and_a_text_that_is_no_document_is_one_row_in_error(desk: Desk) -> None:
    desk.table("id INT")
    desk.write("a.json", '[{"id": 1}, {"id": 2}]')
    desk.write("empty.json", "[]")
    desk.write("bad.json", "[] []")
    load = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = JSON STRIP_OUTER_ARRAY = TRUE) {BY_NAME} ON_ERROR = SKIP_FILE"
    found = {row.file: (row.status, row.rows_parsed) for row in desk.ask(load)}
    assert found == {"a.json": ("LOADED", 2), "empty.json": ("LOADED", 0), "bad.json": ("LOAD_FAILED", 1)}
    assert desk.rows() == [(1,), (2,)]


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


def test_bytes_that_are_no_text_are_errors_of_their_rows_in_quoted_fields_too(desk: Desk) -> None:
    """Spark shows them as U+FFFD, which another file may have as a character."""
    desk.table("id INT, name STRING")
    desk.write("bad.csv", b'1,"caf\xe9"\n2,"ok"\n')
    desk.write("good.csv", '3,"\ufffd"\n')
    load = CSV.replace("FILES = ('{file}') ", "PATTERN = '.*csv' ")
    quoted = "FIELD_OPTIONALLY_ENCLOSED_BY = '\"'"
    found = {row.file: row for row in desk.ask(load.format(options=quoted, tail="ON_ERROR = CONTINUE"))}
    assert {file: row.status for file, row in found.items()} == {"bad.csv": "PARTIALLY_LOADED", "good.csv": "LOADED"}
    assert (found["bad.csv"].errors_seen, "UTF8" in found["bad.csv"].first_error) == (1, True)
    assert desk.rows() == [(2, "ok"), (3, "\ufffd")]


def test_a_header_has_lines_and_a_file_that_ends_within_quotes_is_its_own_error(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.write("a.csv", 'Report\n\nid,name\n1,"a"\n2,b\n')
    desk.write("b.csv", 'id,"name\nin two lines"\nof this\n3,"c\nd"\n')
    desk.write("c +%.csv.gz", '\n\n\n4,"d\n"\n')
    desk.write("open.csv", 'a\nb\nc\n5,"e"\n6,"f\n7,g\n8,h\n')
    quoted = "TYPE = CSV SKIP_HEADER = 3 FIELD_OPTIONALLY_ENCLOSED_BY = '\"'"
    found = {row.file: row for row in desk.ask(f"COPY INTO db.t FROM @s FILE_FORMAT = ({quoted}) ON_ERROR = CONTINUE")}
    assert {file: (row.status, row.rows_loaded) for file, row in found.items()} == {
        "a.csv": ("LOADED", 2),
        "b.csv": ("LOADED", 1),
        "c +%.csv.gz": ("LOADED", 1),
        "open.csv": ("LOAD_FAILED", 0),
    }
    assert "a quote is not closed" in found["open.csv"].first_error
    assert desk.rows() == [(1, "a"), (2, "b"), (3, "c\nd"), (4, "d\n")]


def test_a_quote_is_sought_in_the_whole_record_if_fewer_of_its_fields_are_loaded(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.write("a.csv", '1,"two\nlines",5\n')
    desk.write("b.csv", '2,"two\nlines",""\n')
    desk.write("c.csv", '3,c,"x"\n')
    desk.write("open.csv", '4,d,"\n5,e,f\n')
    quoted = "FILE_FORMAT = (TYPE = CSV FIELD_OPTIONALLY_ENCLOSED_BY = '\"' {}) ON_ERROR = CONTINUE FORCE = TRUE"
    chosen = f"COPY INTO db.t FROM (SELECT $1, $2 FROM @s) {quoted.format('')}"
    ragged = f"COPY INTO db.t FROM @s {quoted.format('ERROR_ON_COLUMN_COUNT_MISMATCH = FALSE')}"
    for load in (chosen, ragged):
        assert desk.copied(load) == {
            "a.csv": "LOADED",
            "b.csv": "LOADED",
            "c.csv": "LOADED",
            "open.csv": "LOAD_FAILED",
        }
    assert desk.rows() == [row for row in [(1, "two\nlines"), (2, "two\nlines"), (3, "c")] for _ in range(2)]


def test_decimals_without_places_take_no_fraction_and_members_of_any_name_their_values(desk: Desk) -> None:
    desk.table("id DECIMAL(38, 0), at STRUCT<`a'\"b`: INT, parts: ARRAY<DECIMAL(5, 0)>>")
    good = ['{"id": 1.0, "at": {"a\'\\"b": 7, "parts": [2.0, null]}}', '{"id": 12345678901234567890}']
    desk.write("a.json", "\n".join([*good, '{"id": 1.5}', '{"at": {"parts": [2.5]}}']))
    desk.write("b.csv", '3.0|{"a\'\\"b": 8}\n4.5|\n')
    ids = pa.array([5.0, 6.5], pa.float64())
    pq.write_table(pa.table({"id": ids}), desk.files / "c.parquet")
    load = "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = {kind}) {by} ON_ERROR = CONTINUE PATTERN = '.*{end}'"
    loads = [("json", BY_NAME), ("csv FIELD_DELIMITER = '|'", ""), ("parquet", BY_NAME)]
    found = [desk.one(load.format(kind=kind, by=by, end=kind.split()[0])) for kind, by in loads]
    assert [(row.rows_loaded, row.errors_seen) for row in found] == [(2, 2), (1, 1), (1, 1)]
    assert sorted(int(id) for (id,) in desk.rows(columns="id")) == [1, 3, 5, 12345678901234567890]
    members = desk.rows(columns="at.`a'\"b`, at.parts")
    assert (members.count((7, [2, None])), members.count((8, None))) == (1, 1)


def test_decimals_without_places_in_nested_texts_take_no_fraction(desk: Desk) -> None:
    desk.table(
        "id INT, at STRUCT<a: DECIMAL(10, 0), b: STRING>, parts ARRAY<DECIMAL(5, 0)>, by MAP<STRING, DECIMAL(3, 0)>"
    )
    good = ['1|{"a": 1.0, "b": "1.5"}|[2, null, "3", 1e2]|{"x": 4}', '2|{"b": "c"}|[]|{"x": null}', "3|||"]
    bad = ['4|{"a": 1.5}||', "5||[1, 2.5]|", '6|||{"x": "0.1"}', "7||[123456]|", '8|{"a": {"c": 1}}||', '9|{"a": tru||']
    desk.write("a.csv", "\n".join([*good, *bad]))
    parts = pa.array([["1", None], ["1.5"]], pa.list_(pa.string()))
    pq.write_table(pa.table({"id": pa.array([10, 11], pa.int32()), "parts": parts}), desk.files / "b.parquet")
    load = "COPY INTO db.t FROM @s PATTERN = '.*{kind}' FILE_FORMAT = (TYPE = {kind} {more}) {by} ON_ERROR = CONTINUE"
    done = desk.one(load.format(kind="csv", more="FIELD_DELIMITER = '|'", by=""))
    assert (done.rows_loaded, done.errors_seen) == (3, 6)
    done = desk.one(load.format(kind="parquet", more="", by=BY_NAME))
    assert (done.rows_loaded, done.errors_seen) == (1, 1)
    assert sorted(desk.rows(columns="id, at, parts, by"), key=itemgetter(0)) == [
        (1, (1, "1.5"), [2, None, 3, 100], {"x": 4}),
        (2, (None, "c"), [], {"x": None}),
        (3, None, None, None),
        (10, None, [1, None], None),
    ]


def test_numbers_with_a_fraction_and_nested_values_with_a_part_that_does_not_fit_are_errors_of_their_rows(
    desk: Desk,
) -> None:
    desk.table("id INT, at STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>, counts MAP<STRING, INT>")
    good = ['{"id": 1.0, "at": {"zip": "5"}, "tags": [1, null], "counts": {"a": 2}}', '{"id": true, "at": null}']
    bad = ['{"id": 1.9}', '{"at": {"zip": "x"}}', '{"at": "x"}', '{"tags": [1, 2.5]}', '{"counts": {"a": "x"}}']
    desk.write("a.json", "\n".join([*good, *bad]))
    load = "COPY INTO db.t FROM @s PATTERN = '.*{kind}' FILE_FORMAT = (TYPE = {kind} {more}) {by} ON_ERROR = CONTINUE"
    (done,) = desk.ask(load.format(kind="json", more="", by=BY_NAME))
    assert (done.rows_parsed, done.errors_seen) == (7, 5)
    first = (1, (None, 5), [1, None], {"a": 2})
    assert desk.rows() == [(1, None, None, None), first]
    at = pa.array([{"zip": 5.0}, {"zip": 5.5}, None], pa.struct([("zip", pa.float64())]))
    tags = pa.array([["1", None], None, ["1", "x"]], pa.list_(pa.string()))
    ids = pa.array([1.0, 2.0, 3.0], pa.float64())
    pq.write_table(pa.table({"id": ids, "at": at, "tags": tags}), desk.files / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([4.5, None])}), desk.files / "b.parquet")
    found = {row.file: row for row in desk.ask(load.format(kind="parquet", more="", by=BY_NAME))}
    assert [(found[file].rows_loaded, found[file].errors_seen) for file in ("a.parquet", "b.parquet")] == [
        (1, 2),
        (1, 1),
    ]
    desk.write("a.csv", '1|{"zip": 5}|[1, null]|{"a": 2}\n2|{"zip": "x"}||\n3||[1, "x"]|\n4|[]||\n')
    (done,) = desk.ask(load.format(kind="csv", more="FIELD_DELIMITER = '|'", by=""))
    assert (done.rows_loaded, done.errors_seen) == (1, 3)
    assert desk.rows().count(first) == 2


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
