"""COPY INTO: errors, limits, validation and the options that decide which files are loaded."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.engine.pipes.desk import Desk
from tests.tiers import some_rows
from tidemark.errors import CopyAborted, CopyRefused, NotYetSupported
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.files_table import FilesTable

pytestmark = pytest.mark.spark

GOOD, BAD = "1,a\n2,b\n", "3,c\nx,d\n5,e\n"
PLAIN = "FILE_FORMAT = (TYPE = CSV)"


@pytest.fixture
def mixed(desk: Desk) -> Desk:
    """Good rows in good.csv, and in bad.csv one of three rows in error."""
    desk.table("id INT, name STRING")
    desk.put(good=GOOD, bad=BAD)
    return desk


def test_the_first_error_ends_the_statement_and_names_its_place(mixed: Desk) -> None:
    with pytest.raises(CopyAborted) as caught:
        mixed.lake.sql(f"COPY INTO db.t FROM @s {PLAIN}")
    assert "file bad.csv, line 2, character 1, column id" in str(caught.value)
    assert mixed.rows() == []
    mixed.put(bad="3,c\n")
    assert set(mixed.copied(f"COPY INTO db.t FROM @s {PLAIN}").values()) == {"LOADED"}


def test_continue_loads_the_good_rows_and_reports_the_first_error(mixed: Desk) -> None:
    found = {row.file: row for row in mixed.ask(f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = CONTINUE")}
    bad = found["bad.csv"]
    assert (bad.status, bad.rows_parsed, bad.rows_loaded, bad.errors_seen) == ("PARTIALLY_LOADED", 3, 2, 1)
    assert (bad.first_error_line, bad.first_error_character, bad.first_error_column_name) == (2, 1, "id")
    assert "x" in bad.first_error
    assert found["good.csv"].status == "LOADED"
    assert [row[0] for row in mixed.rows()] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("on_error", "status", "limit"),
    some_rows(
        [
            ("SKIP_FILE", "LOAD_FAILED", 1),
            ("SKIP_FILE_1", "LOAD_FAILED", 1),
            ("SKIP_FILE_2", "PARTIALLY_LOADED", 2),
            ("'SKIP_FILE_30%'", "LOAD_FAILED", 1),
            ("'SKIP_FILE_40%'", "PARTIALLY_LOADED", 2),
        ],
        now=[("SKIP_FILE_2", "PARTIALLY_LOADED", 2), ("'SKIP_FILE_30%'", "LOAD_FAILED", 1)],
    ),
)
def test_a_file_is_skipped_from_its_limit_of_errors_on(mixed: Desk, on_error: str, status: str, limit: int) -> None:
    found = {row.file: row for row in mixed.ask(f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = {on_error}")}
    bad = found["bad.csv"]
    assert (bad.status, bad.error_limit, bad.rows_loaded) == (status, limit, 2 if status != "LOAD_FAILED" else 0)
    assert (found["good.csv"].status, len(mixed.rows())) == ("LOADED", 2 + bad.rows_loaded)


def test_a_skipped_file_is_loaded_once_it_is_repaired(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = SKIP_FILE"
    assert mixed.copied(load) == {"good.csv": "LOADED", "bad.csv": "LOAD_FAILED"}
    mixed.put(bad="3,c\n")
    assert mixed.copied(load) == {"bad.csv": "LOADED"}
    assert mixed.ask(f"{load} RETURN_FAILED_ONLY = TRUE")[0].status == "Copy executed with 0 files processed."


def test_only_files_with_errors_are_returned_on_request(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = SKIP_FILE RETURN_FAILED_ONLY = TRUE"
    assert mixed.copied(load) == {"bad.csv": "LOAD_FAILED"}


def test_validation_shows_errors_or_rows_and_writes_nothing(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s {PLAIN}"
    (error,) = mixed.ask(f"{load} VALIDATION_MODE = RETURN_ERRORS")
    assert ", ".join(error.asDict()) == (
        "error, file, line, character, byte_offset, category, code, sql_state, column_name, row_number,"
        " row_start_line, rejected_record"
    )
    assert (error.file, error.line, error.character, error.column_name) == ("bad.csv", 2, 1, "id")
    assert (error.category, error.row_number, error.rejected_record) == ("conversion", 2, "x,d")
    with pytest.raises(CopyAborted, match="line 2"):
        mixed.lake.sql(f"{load} VALIDATION_MODE = RETURN_2_ROWS")
    rows = mixed.ask(f"{load} PATTERN = 'good.*' VALIDATION_MODE = RETURN_1_ROWS")
    assert [row.asDict() for row in rows] == [{"id": 1, "name": "a"}]
    assert mixed.rows() == []
    assert mixed.copied(f"{load} PATTERN = 'good.*'") == {"good.csv": "LOADED"}


def test_all_errors_are_those_of_files_that_were_loaded_in_part_too(mixed: Desk) -> None:
    mixed.ask(f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = CONTINUE")
    load = f"COPY INTO db.t FROM @s {PLAIN} VALIDATION_MODE"
    assert mixed.ask(f"{load} = RETURN_ERRORS") == []
    assert [row.file for row in mixed.ask(f"{load} = RETURN_ALL_ERRORS")] == ["bad.csv"]


def test_purge_removes_what_was_loaded_and_nothing_else(mixed: Desk) -> None:
    mixed.ask(f"COPY INTO db.t FROM @s {PLAIN} ON_ERROR = SKIP_FILE PURGE = TRUE")
    assert [file.name for file in mixed.files.iterdir()] == ["bad.csv"]


def test_force_loads_again(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s FILES = ('good.csv') {PLAIN}"
    mixed.ask(load)
    assert mixed.copied(f"{load} FORCE = TRUE") == {"good.csv": "LOADED"}
    assert [row[0] for row in mixed.rows()] == [1, 1, 2, 2]


def test_a_changed_file_of_the_same_name_is_not_loaded_again(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s FILES = ('good.csv') {PLAIN}"
    mixed.ask(load)
    mixed.put(good="9,z\n")
    assert mixed.status(load) == "Copy executed with 0 files processed."


def test_a_file_of_the_same_name_in_another_directory_is_another_file(mixed: Desk) -> None:
    mixed.put(sub__good="7,g\n")
    assert mixed.copied(f"COPY INTO db.t FROM @s FILES = ('good.csv') {PLAIN}") == {"good.csv": "LOADED"}
    assert mixed.copied(f"COPY INTO db.t FROM '{mixed.files}/sub/' {PLAIN}") == {"good.csv": "LOADED"}
    assert mixed.rows() == [(1, "a"), (2, "b"), (7, "g")]
    for same in (f"@s/sub/ {PLAIN}", f"'{mixed.files}' FILES = ('good.csv', 'sub/good.csv') {PLAIN}"):
        assert mixed.status(f"COPY INTO db.t FROM {same}") == "Copy executed with 0 files processed."


def test_a_table_that_was_created_again_loads_its_files_again(mixed: Desk) -> None:
    load = f"COPY INTO db.t FROM @s FILES = ('good.csv') {PLAIN}"
    mixed.ask(load)
    shutil.rmtree(mixed.root / "db" / "t")
    mixed.table("id INT, name STRING")
    assert mixed.ask(f"{load} VALIDATION_MODE = RETURN_ERRORS") == []
    assert mixed.copied(load) == {"good.csv": "LOADED"}
    assert mixed.rows() == [(1, "a"), (2, "b")]
    assert mixed.status(load) == "Copy executed with 0 files processed."


def test_a_file_that_is_replaced_before_the_purge_stays(mixed: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program writes it again as soon as its rows are in the table."""
    end = FilesTable.end

    def replaced(*arguments: object, **more: object) -> None:
        mixed.put(good="7,new\n")
        end(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(FilesTable, "end", replaced)
    mixed.ask(f"COPY INTO db.t FROM @s FILES = ('good.csv') {PLAIN} PURGE = TRUE")
    assert (mixed.files / "good.csv").read_text() == "7,new\n"
    assert mixed.rows() == [(1, "a"), (2, "b")]


def test_the_size_limit_takes_the_oldest_files_first_and_at_least_one(desk: Desk) -> None:
    desk.table("id INT")
    for number in (1, 2, 3):
        place = desk.write(f"f{number}.csv", f"{number}\n" * 4)  # 8 bytes
        os.utime(place, (time.time() - 100 + number,) * 2)
    load = f"COPY INTO db.t FROM @s {PLAIN} SIZE_LIMIT"
    assert sorted(desk.copied(f"{load} = 15")) == ["f1.csv", "f2.csv"]
    assert sorted(desk.copied(f"{load} = 1")) == ["f3.csv"]


def test_old_files_are_loaded_as_long_as_the_history_has_forgotten_none(desk: Desk) -> None:
    desk.table("id INT")
    _aged(desk.write("old.csv", "1\n"))
    load = f"COPY INTO db.t FROM @s {PLAIN}"
    assert desk.copied(load) == {"old.csv": "LOADED"}
    _aged(desk.write("older.csv", "2\n"))
    assert desk.copied(load) == {"older.csv": "LOADED"}
    assert desk.status(load) == "Copy executed with 0 files processed."


def test_files_that_the_history_may_have_forgotten_are_loaded_on_request(desk: Desk) -> None:
    desk.table("id INT")
    desk.write("new.csv", "1\n")
    load = f"COPY INTO db.t FROM @s {PLAIN}"
    desk.ask(load)
    (first,) = desk.root.rglob("*__copy_history/_delta_log/00000000000000000000.json")
    _aged(first)
    _aged(desk.write("old.csv", "2\n"))
    assert desk.status(load) == "Copy executed with 0 files processed."
    assert desk.copied(f"{load} LOAD_UNCERTAIN_FILES = TRUE") == {"old.csv": "LOADED"}


def _aged(place: Path) -> None:
    """The file is older than what a history of 64 days remembers."""
    os.utime(place, (time.time() - timedelta(days=65).total_seconds(),) * 2)


def test_texts_are_cut_only_on_request(desk: Desk) -> None:
    desk.table("name VARCHAR(2)")
    desk.put(a="long\n")
    with pytest.raises(CopyAborted, match="name"):
        desk.lake.sql(f"COPY INTO db.t FROM @s {PLAIN}")
    desk.ask(f"COPY INTO db.t FROM @s {PLAIN} TRUNCATECOLUMNS = TRUE")
    assert desk.rows() == [("lo",)]


def test_new_columns_of_files_come_into_the_table_on_request(desk: Desk) -> None:
    desk.table("id INT")
    desk.write("a.json", '{"id": 1, "name": "a"}\n')
    desk.ask(
        "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = JSON) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
        " ENABLE_SCHEMA_EVOLUTION = TRUE"
    )
    assert desk.rows(columns="id, name") == [(1, "a")]


def test_a_column_keeps_not_null_until_rows_without_it_are_loaded(desk: Desk) -> None:
    desk.table("id INT NOT NULL, name VARCHAR(2)")
    load = (
        "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = JSON) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
        " ENABLE_SCHEMA_EVOLUTION = TRUE"
    )

    def is_nullable() -> bool:
        schema = json.loads(DeltaLog.open(f"{desk.root}/db/t").state().metadata.schema_json)
        return bool(schema["fields"][0]["nullable"])

    desk.write("a.json", "")
    assert desk.copied(load) == {"a.json": "LOADED"}
    desk.write("b.json", '{"name": "a"}\n{"name": "long"}\n')
    with pytest.raises(CopyAborted):
        desk.lake.sql(load)
    assert not is_nullable()
    assert desk.copied(f"{load} ON_ERROR = CONTINUE") == {"b.json": "PARTIALLY_LOADED"}
    assert is_nullable()
    assert desk.rows() == [(None, "a")]


@pytest.mark.parametrize("kind", ["JSON", "CSV"])
def test_a_new_column_whose_name_the_table_cannot_have_is_the_error_of_its_file(desk: Desk, kind: str) -> None:
    desk.table("id INT")
    texts = {"JSON": ('{{"id": {0}, "{1}": "a"}}\n'), "CSV": "id,{1}\n{0},a\n"}
    desk.write("bad", texts[kind].format(1, "unit price"))
    desk.write("good", texts[kind].format(2, "price"))
    options = {"JSON": "JSON", "CSV": "CSV PARSE_HEADER = TRUE"}[kind]
    found = desk.ask(
        f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = {options}) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"
        " ENABLE_SCHEMA_EVOLUTION = TRUE ON_ERROR = SKIP_FILE"
    )
    assert {row.file: row.status for row in found} == {"bad": "LOAD_FAILED", "good": "LOADED"}
    assert "unit price" in next(row.first_error for row in found if row.file == "bad")
    assert desk.rows() == [(2, "a")]


def test_wrong_columns_and_statements_without_a_counterpart_are_refused_before_anything_is_written(mixed: Desk) -> None:
    with pytest.raises(CopyRefused, match="nobody"):
        mixed.lake.sql(f"COPY INTO db.t (id, nobody) FROM @s {PLAIN}")
    for text in (
        "COPY INTO @s FROM db.t",
        "COPY INTO db.t FROM @~/x",
        "PUT file:///x @s",
        "SELECT * FROM TABLE(VALIDATE(t, JOB_ID => '_last'))",
    ):
        with pytest.raises(NotYetSupported):
            mixed.lake.sql(text)
    assert "no option PATERN" in mixed.refused(f"COPY INTO db.t FROM @s {PLAIN} PATERN = 'x'")
    assert mixed.rows() == []
