"""COPY INTO by the examples of the source system's manual: files by stage, name and pattern, and their formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import FilesNotFound, StageLocationMissing

pytestmark = pytest.mark.spark

NOTHING = "Copy executed with 0 files processed."
CSV = "FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)"


@pytest.fixture
def contacts(desk: Desk) -> Desk:
    desk.table("id INT, name STRING")
    for number in (1, 2, 3):
        desk.put(**{f"contacts{number}": f"id|name\n{number}|n{number}\n"})
    desk.write("employees01.csv", "id|name\n7|seven\n")
    desk.lake.create_file_format("pipes", "CSV", {"FIELD_DELIMITER": "|", "SKIP_HEADER": 1})
    return desk


def test_files_of_a_stage_are_loaded_once(contacts: Desk) -> None:
    load = "COPY INTO db.t FROM @s FILE_FORMAT = (FORMAT_NAME = pipes)"
    first = contacts.ask(load)
    assert [(row.file, row.status) for row in first] == [
        *((f"contacts{number}.csv", "LOADED") for number in (1, 2, 3)),
        ("employees01.csv", "LOADED"),
    ]
    (row,) = [row for row in first if row.file == "contacts1.csv"]
    assert row.asDict() == {
        "file": "contacts1.csv",
        "status": "LOADED",
        "rows_parsed": 1,
        "rows_loaded": 1,
        "error_limit": 1,
        "errors_seen": 0,
        "first_error": None,
        "first_error_line": None,
        "first_error_character": None,
        "first_error_column_name": None,
    }
    assert contacts.status(load) == NOTHING
    assert contacts.rows() == [(1, "n1"), (2, "n2"), (3, "n3"), (7, "seven")]
    contacts.put(contacts4="id|name\n4|n4\n")
    assert contacts.copied(load) == {"contacts4.csv": "LOADED"}


def test_files_are_chosen_by_pattern_by_name_and_by_the_path_behind_the_stage(contacts: Desk) -> None:
    by = "FILE_FORMAT = (FORMAT_NAME = 'pipes')"
    assert contacts.copied(f"COPY INTO db.t FROM @s PATTERN = '.*contacts[1-2].csv' {by}") == {
        "contacts1.csv": "LOADED",
        "contacts2.csv": "LOADED",
    }
    assert contacts.copied(f"COPY INTO db.t FROM @s FILES = ('contacts1.csv', 'contacts3.csv') {by}") == {
        "contacts3.csv": "LOADED"
    }
    assert contacts.copied(f"COPY INTO db.t FROM '@s/employees' {by}") == {"employees01.csv": "LOADED"}
    assert contacts.status(f"COPY INTO db.t FROM @s PATTERN = 'none.*' {by}") == NOTHING
    with pytest.raises(FilesNotFound, match=r"nowhere\.csv"):
        contacts.lake.sql(f"COPY INTO db.t FROM @s FILES = ('nowhere.csv') {by}")
    assert len(contacts.rows()) == 4


def test_a_directory_below_the_stage_and_a_uri_lead_to_the_same_files(contacts: Desk) -> None:
    contacts.put(y2024__a="id|name\n24|a\n")
    by = "FILE_FORMAT = (FORMAT_NAME = pipes)"
    assert contacts.copied(f"COPY INTO db.t FROM @s/y2024/ {by}") == {"y2024/a.csv": "LOADED"}
    assert contacts.status(f"COPY INTO db.t FROM 'file://{contacts.files}/y2024/' {by}") == NOTHING
    with pytest.raises(StageLocationMissing, match="y2025"):
        contacts.lake.sql(f"COPY INTO db.t FROM '{contacts.files}/y2025' {by}")


def test_packed_files_load_with_the_columns_in_another_order(desk: Desk) -> None:
    desk.table("city STRING, zip STRING, sale_date DATE, price DECIMAL(10, 2)")
    desk.write("sales.csv.gz", '2013-10-20,"12,50",Lexington,40502\n2013-10-21,"3,00",Belmont,02478\n')
    desk.ask(
        """COPY INTO db.t (city, zip, sale_date, price)
           FROM (SELECT t.$3, t.$4, t.$1, REPLACE(t.$2, ',', '.')::NUMBER(10, 2) FROM @s t)
           FILE_FORMAT = (TYPE = CSV FIELD_OPTIONALLY_ENCLOSED_BY = '"')"""
    )
    assert desk.rows(columns="city, zip, CAST(sale_date AS STRING), CAST(price AS STRING)") == [
        ("Belmont", "02478", "2013-10-21", "3.00"),
        ("Lexington", "40502", "2013-10-20", "12.50"),
    ]


def test_rows_of_json_files_become_variants(desk: Desk) -> None:
    desk.table("v VARIANT")
    rows = [{"name": "Ann", "address": {"city": "Bern"}}, {"name": "Bob", "tags": [1, 2]}]
    desk.write("people.json", "\n".join(map(json.dumps, rows)))
    desk.ask("COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = JSON)")
    assert sorted((json.loads(row[0]) for row in desk.rows(columns="to_json(v)")), key=repr) == sorted(rows, key=repr)


def test_parts_of_json_rows_are_selected_by_their_paths(desk: Desk) -> None:
    desk.table("city STRING, zip INT, sale_date DATE, tag INT")
    sale = {"location": {"city": "Lexington", "zip": "40503"}, "sale_date": "2017-03-05", "tags": [3, 4]}
    desk.write("sales.json", json.dumps([sale, {"location": {"city": "Belmont"}}]))
    desk.ask(
        """COPY INTO db.t (city, zip, sale_date, tag)
           FROM (SELECT $1:location.city, $1:location.zip, $1:sale_date, $1:tags[1] FROM @s)
           FILE_FORMAT = (TYPE = JSON STRIP_OUTER_ARRAY = TRUE DATE_FORMAT = 'YYYY-MM-DD')"""
    )
    assert desk.rows(columns="city, zip, CAST(sale_date AS STRING), tag") == [
        ("Belmont", None, None, None),
        ("Lexington", 40503, "2017-03-05", 4),
    ]


def test_parquet_files_are_matched_by_the_names_of_columns(desk: Desk, tmp_path: Path) -> None:
    desk.table("id BIGINT, name STRING, more STRING")
    desk.spark.sql("SELECT 'x' AS NAME, 1L AS ID, true AS unknown").coalesce(1).write.parquet(str(tmp_path / "p"))
    (part,) = (tmp_path / "p").glob("*.parquet")
    desk.write("people.parquet", part.read_bytes())
    done = desk.one("""COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = PARQUET) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE""")
    assert (done.status, done.rows_loaded, desk.rows()) == ("LOADED", 1, [(1, "x", None)])
    desk.table("id BIGINT, name STRING", name="u")
    desk.ask("COPY INTO db.u FROM (SELECT $1:ID + 1, upper($1:NAME) FROM @s) FILE_FORMAT = (TYPE = PARQUET)")
    assert desk.rows("u") == [(2, "X")]


def test_metadata_of_files_are_columns_of_a_transformation(desk: Desk) -> None:
    desk.table("file STRING, row BIGINT, name STRING, at TIMESTAMP, scanned TIMESTAMP")
    desk.put(a="x\ny\n", b__c="z\n")
    desk.ask(
        """COPY INTO db.t FROM (SELECT METADATA$FILENAME, METADATA$FILE_ROW_NUMBER, $1,
           METADATA$FILE_LAST_MODIFIED, METADATA$START_SCAN_TIME FROM @s)"""
    )
    found = desk.rows(columns="file, row, name, at IS NOT NULL AND scanned >= at")
    assert found == [("a.csv", 1, "x", True), ("a.csv", 2, "y", True), ("b/c.csv", 1, "z", True)]


def test_arguments_mean_the_same_as_the_options_of_the_statement(contacts: Desk) -> None:
    lake = contacts.lake
    shown = lake.copy_into("db.t", "@s/contacts", pattern=".*[12].csv", file_format="pipes", columns=["id", "name"])
    assert [(row.file, row.status) for row in shown.collect()] == [
        ("contacts1.csv", "LOADED"),
        ("contacts2.csv", "LOADED"),
    ]
    spelled = {"type": "csv", "field_delimiter": "|", "skip_header": 1}
    more = lake.copy_into(f"{contacts.root}/db/t", str(contacts.files), file_format=spelled, select="$1 + 10, 'it''s'")
    assert [row.status for row in more.collect()] == ["LOADED"] * 2
    assert contacts.rows() == [(1, "n1"), (13, "it's"), (17, "it's"), (2, "n2")]
    assert "excludes" in contacts.refused(
        "", lambda _: lake.copy_into("db.t", "@s", files=["a"], pattern="b", file_format="pipes")
    )
