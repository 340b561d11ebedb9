"""The histories of loads: by table and by pipe, as DataFrames and in queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import NotYetSupported, TableNotFound

pytestmark = pytest.mark.spark

COPY = "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = CSV)"
HOUR = timedelta(hours=1)


@pytest.fixture
def loaded(desk: Desk) -> Desk:
    """a.csv came by COPY, b.csv by a pipe that is dropped, and c.csv, with an error in line 2, by another one."""
    desk.table("id INT, name STRING")
    desk.put(a="1,a\n")
    desk.ask(f"{COPY} PATTERN = 'a.*'")
    desk.lake.create_pipe("db.old", f"{COPY} PATTERN = 'b.*'")
    desk.lake.create_pipe("db.p", f"COPY INTO delta.`{desk.root}/db/t` FROM @s PATTERN = 'c.*' ON_ERROR = CONTINUE")
    desk.put(b="2,b\n", c="3,c\nx,d\n4,e\n")
    desk.lake.run_pipe("db.old")
    desk.lake.drop_pipe("db.old")
    desk.lake.run_pipe("db.p")
    return desk


def test_the_history_of_a_table_has_the_loads_of_statements_and_of_all_pipes(loaded: Desk) -> None:
    start = datetime.now(UTC) - HOUR
    found = {row.file_name: row for row in loaded.lake.copy_history("db.t", start).collect()}
    assert {name: (row.status, row.pipe_name, row.row_count) for name, row in found.items()} == {
        "a.csv": ("Loaded", None, 1),
        "b.csv": ("Loaded", "old", 1),
        "c.csv": ("Partially loaded", "p", 2),
    }
    bad = found["c.csv"]
    assert (bad.row_parsed, bad.error_count, bad.error_limit, bad.file_size) == (3, 1, None, 12)
    assert (bad.first_error_line_number, bad.first_error_character_position) == (2, 1)
    assert (bad.first_error_column_name, bad.table_schema_name, bad.table_name) == ("id", "db", "t")
    assert bad.stage_location == f"file://{loaded.files}/"
    assert bad.pipe_received_time <= bad.last_load_time
    assert loaded.lake.copy_history("db.t", start - HOUR, start).collect() == []
    with pytest.raises(TableNotFound):
        loaded.lake.copy_history("db.nobody", start)


def test_copy_history_is_a_table_of_queries(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.put(a="1,a\n", c="3,c\nx,d\n4,e\n")
    desk.ask(f"{COPY} ON_ERROR = CONTINUE")
    arguments = "TABLE_NAME => 'db.t', START_TIME => DATEADD(hours, -1, CURRENT_TIMESTAMP())"
    history = f"TABLE(INFORMATION_SCHEMA.COPY_HISTORY({arguments}))"
    rows = desk.ask(f"SELECT file_name, status, row_count FROM {history} AS h WHERE error_count > 0")
    assert [tuple(row) for row in rows] == [("c.csv", "Partially loaded", 2)]
    newest = f"TABLE(INFORMATION_SCHEMA.COPY_HISTORY({arguments}, RESULT_LIMIT => 1))"
    assert desk.one(f"SELECT status FROM {newest}").status in {"Loaded", "Partially loaded"}
    with pytest.raises(NotYetSupported):
        desk.lake.sql("SELECT * FROM TABLE(INFORMATION_SCHEMA.LOAD_HISTORY())")


def test_files_that_wait_are_loads_in_progress(desk: Desk) -> None:
    desk.table("id INT")
    desk.lake.create_pipe("p", COPY)
    assert desk.lake.insert_report("p").collect() == []
    assert desk.lake.load_history("p").collect() == []
    assert desk.lake.pipe_status("p")["pendingFileCount"] == 0
    desk.put(a="1\n")
    desk.lake.insert_files("p", ["a.csv"])
    (waits,) = desk.lake.insert_report("p").collect()
    assert (waits.path, waits.status, waits.complete) == ("a.csv", "LOAD_IN_PROGRESS", False)
    assert waits.stageLocation == f"file://{desk.files}/"
    (row,) = desk.lake.copy_history("db.t", datetime.now(UTC) - HOUR).collect()
    assert (row.status, row.pipe_name, row.last_load_time) == ("Load in progress", "p", None)
    desk.lake.run_pipe("p")
    (done,) = desk.lake.insert_report("p").collect()
    assert (done.status, done.complete, done.rowsInserted, done.errorsSeen) == ("LOADED", True, 1, 0)


def test_the_history_of_a_pipe_is_chosen_by_the_end_of_loads(loaded: Desk) -> None:
    now = datetime.now(UTC)
    (row,) = loaded.lake.load_history("db.p", now - HOUR, now + HOUR).collect()
    assert (row.path, row.status, row.rowsParsed, row.rowsInserted) == ("c.csv", "PARTIALLY_LOADED", 3, 2)
    assert (row.errorsSeen, row.firstErrorLineNum, row.firstErrorColumnName) == (1, 2, "id")
    assert loaded.lake.load_history("db.p", now + HOUR).collect() == []
    assert loaded.lake.load_history("db.p", end=now - HOUR).collect() == []


def test_a_file_that_was_loaded_twice_has_two_loads(desk: Desk) -> None:
    desk.table("id INT")
    desk.put(a="1\n")
    desk.ask(COPY)
    desk.ask(f"{COPY} FORCE = TRUE")
    rows = desk.lake.copy_history("db.t", datetime.now(UTC) - HOUR).collect()
    assert [row.file_name for row in rows] == ["a.csv", "a.csv"]
