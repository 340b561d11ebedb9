"""Pipes by SQL: new files arrive once, in runs; pauses, changes and drops keep or end their histories."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.control.object_histories import Portion
from tidemark.control.samples import sampled
from tidemark.control.store import ControlStore
from tidemark.errors import (
    InvalidArgument,
    PipeExists,
    PipeNotFound,
    PipePaused,
    PipeStale,
    StageNotFound,
)

pytestmark = pytest.mark.spark

COPY = "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = CSV)"


@pytest.fixture
def piped(desk: Desk) -> Desk:
    desk.table("id INT, name STRING")
    desk.ask(f"CREATE PIPE db.p AUTO_INGEST = TRUE COMMENT = 'first' AS {COPY}")
    return desk


def status_of(desk: Desk, pipe: str = "db.p") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(desk.one(f"SELECT SYSTEM$PIPE_STATUS('{pipe}')")[0])
    return found


@pytest.mark.quick
def test_a_run_loads_new_files_and_a_second_one_finds_nothing(piped: Desk) -> None:
    piped.put(a="1,a\n", b="2,b\nx,c\n")
    report = piped.lake.run_pipe("db.p")
    assert (report.batches, report.files, report.files_loaded, report.rows_loaded) == (1, 2, 1, 1)
    assert [(one.file, one.first_error_line, one.first_error_column) for one in report.failed] == [("b.csv", 2, "id")]
    assert piped.lake.run_pipe("DB.P").batches == 0
    piped.put(c="3,c\n")
    assert piped.lake.run_pipe("db.p").rows_loaded == 1
    assert piped.rows() == [(1, "a"), (3, "c")]
    (pipe,) = piped.lake.show_pipes(like="P")
    assert pipe.stalled is None
    assert pipe.problem is None  # the last run took a good file
    store = ControlStore(piped.store)
    runs = store.read(lambda c: sampled(c, "pipe", pipe.uid, Portion(None, 10)))
    names = ("files", "files_loaded", "files_with_errors", "rows", "errors")
    assert [[one.values[name] for name in names] for one in runs] == [[1, 1, 0, 1, 0], [2, 1, 1, 1, 1]]
    assert runs[0].values["bytes"] == 4
    store.close()


def test_the_problem_of_files_stays_with_the_pipe_until_a_run_takes_others(piped: Desk) -> None:
    piped.put(bad="x,c\n")
    piped.lake.run_pipe("db.p")
    piped.lake.run_pipe("db.p")
    (pipe,) = piped.lake.show_pipes()
    assert "file bad.csv, line 1, character 1, column id" in str(pipe.problem)
    assert status_of(piped)["executionState"] == "RUNNING"


def test_without_auto_ingest_files_come_by_a_refresh_or_by_their_names(desk: Desk) -> None:
    desk.table("id INT")
    desk.ask(f"CREATE PIPE p AS {COPY}")
    desk.put(a="1\n", b="2\n", y__c="3\n")
    assert desk.lake.run_pipe("p").files == 0
    assert [tuple(row) for row in desk.ask("ALTER PIPE p REFRESH PREFIX = 'y/'")] == [("y/c.csv", "SENT")]
    queued = desk.lake.insert_files("p", ["a.csv", "nowhere.csv"])
    assert (queued.queued, queued.known) == (1, 0)
    assert (desk.lake.insert_files("p", ["a.csv"]).queued, status_of(desk, "p")["pendingFileCount"]) == (0, 2)
    assert desk.lake.run_pipe("p").files_loaded == 2
    assert [row[0] for row in desk.ask("ALTER PIPE p REFRESH")] == ["b.csv"]
    desk.lake.run_pipe("p")
    assert desk.rows() == [(1,), (2,), (3,)]
    assert desk.ask("ALTER PIPE p REFRESH") == []
    with pytest.raises(InvalidArgument, match="5,000"):
        desk.lake.insert_files("p", [])


def test_a_refresh_takes_files_behind_a_time_and_those_that_failed(piped: Desk) -> None:
    old = piped.write("old.csv", "1,a\n")
    os.utime(old, (time.time() - 7200,) * 2)
    piped.put(new="x,b\n")
    hour = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert [row.File for row in piped.ask(f"ALTER PIPE db.p REFRESH MODIFIED_AFTER = '{hour}'")] == ["new.csv"]
    assert piped.lake.run_pipe("db.p", list_files=False).files == 1
    piped.put(new="2,b\n")
    assert [row.File for row in piped.ask(f"ALTER PIPE db.p REFRESH MODIFIED_AFTER = '{hour}'")] == ["new.csv"]
    assert piped.lake.run_pipe("db.p").files_loaded == 2
    assert piped.rows() == [(1, "a"), (2, "b")]


def test_a_paused_pipe_loads_nothing_and_its_queue_grows(piped: Desk) -> None:
    piped.put(a="1,a\n")
    piped.ask("ALTER PIPE db.p SET PIPE_EXECUTION_PAUSED = TRUE")
    with pytest.raises(PipePaused, match=r"db\.p"):
        piped.lake.run_pipe("db.p")
    piped.lake.insert_files("db.p", ["a.csv"])
    shown = status_of(piped)
    assert (shown["executionState"], shown["pendingFileCount"], shown["oldestPendingFilePath"]) == (
        "PAUSED",
        1,
        "a.csv",
    )
    assert "oldestFileTimestamp" in shown
    piped.ask("ALTER PIPE db.p SET PIPE_EXECUTION_PAUSED = FALSE")
    assert piped.lake.run_pipe("db.p").rows_loaded == 1
    shown = status_of(piped)
    assert (shown["executionState"], shown["pendingFileCount"], shown["lastIngestedFilePath"]) == (
        "RUNNING",
        0,
        "a.csv",
    )
    assert "oldestPendingFilePath" not in shown


def test_a_pause_that_is_longer_than_the_history_needs_force(piped: Desk) -> None:
    piped.ask("ALTER PIPE db.p SET PIPE_EXECUTION_PAUSED = TRUE")
    piped.late = timedelta(days=15)
    with pytest.raises(PipeStale, match="STALENESS_CHECK_OVERRIDE"):
        piped.lake.sql("ALTER PIPE db.p SET PIPE_EXECUTION_PAUSED = FALSE")
    assert "stale" in status_of(piped)["error"]
    with pytest.raises(PipeStale):
        piped.lake.sql("SELECT SYSTEM$PIPE_FORCE_RESUME('db.p')")
    piped.ask("SELECT SYSTEM$PIPE_FORCE_RESUME('db.p', 'STALENESS_CHECK_OVERRIDE')")
    assert status_of(piped)["executionState"] == "RUNNING"


def test_another_statement_keeps_the_history_and_a_pipe_of_the_same_name_is_a_new_one(piped: Desk) -> None:
    piped.put(a="1,a\n")
    piped.lake.run_pipe("db.p")
    with pytest.raises(PipeExists):
        piped.lake.sql(f"CREATE PIPE db.p AS {COPY}")
    assert "already exists" in piped.status(f"CREATE PIPE IF NOT EXISTS db.p AS {COPY}")
    changed = "COPY INTO db.t FROM (SELECT $1 + 100, $2 FROM @s) FILE_FORMAT = (TYPE = CSV)"
    piped.ask(f"CREATE OR REPLACE PIPE db.p AUTO_INGEST = TRUE AS {changed}")
    piped.put(b="2,b\n")
    assert piped.lake.run_pipe("db.p").files == 1
    assert piped.rows() == [(1, "a"), (102, "b")]
    assert piped.status("DROP PIPE db.p") == "db.p successfully dropped."
    assert "already dropped" in piped.status("DROP PIPE IF EXISTS db.p")
    with pytest.raises(PipeNotFound):
        piped.lake.run_pipe("db.p")
    piped.ask(f"CREATE PIPE db.p AUTO_INGEST = TRUE AS {COPY}")
    assert piped.lake.run_pipe("db.p").files_loaded == 2
    (pipe,) = piped.lake.show_pipes()
    assert pipe.queue.endswith("/db/p_2__files")
    assert len(piped.rows()) == 4


def test_a_pipe_that_gets_another_location_loads_files_of_the_same_names_there(piped: Desk) -> None:
    piped.put(day1__a="1,a\n", day2__a="2,b\n")
    whole = "CREATE OR REPLACE PIPE db.p AUTO_INGEST = TRUE AS COPY INTO db.t FROM @s{}/ FILE_FORMAT = (TYPE = CSV)"
    stages = {name: f"{piped.files}/{name}" for name in ("day1", "day2")}
    for name, place in stages.items():
        piped.lake.create_stage(name, place)
        piped.ask(whole.format("").replace("@s", f"@{name}"))
        assert piped.lake.run_pipe("db.p").files_loaded == 1
        assert piped.lake.run_pipe("db.p").files == 0
    piped.ask(whole.format(""))
    assert piped.lake.run_pipe("db.p").files == 0, "they were loaded from below"
    assert piped.lake.insert_files("db.p", ["day1/a.csv"]).queued == 0
    assert piped.rows() == [(1, "a"), (2, "b")]


def test_a_run_that_cannot_load_leaves_its_state_and_its_reason(piped: Desk) -> None:
    piped.put(a="1,a\n")
    piped.ask("DROP STAGE s")
    with pytest.raises(StageNotFound):
        piped.lake.run_pipe("db.p")
    shown = status_of(piped)
    assert (shown["executionState"], "no stage s" in shown["error"]) == ("STOPPED_STAGE_DROPPED", True)
    piped.ask(f"CREATE STAGE s URL = '{piped.files}'")
    assert piped.lake.run_pipe("db.p").rows_loaded == 1
    assert status_of(piped)["executionState"] == "RUNNING"


def test_what_copy_into_has_loaded_is_left_out_by_refreshes_and_listings(piped: Desk) -> None:
    piped.put(y__a="1,a\n", y__b="x,b\n")
    piped.ask(f"COPY INTO db.t FROM '{piped.files}/y' FILE_FORMAT = (TYPE = CSV) ON_ERROR = SKIP_FILE")
    piped.put(c="3,c\n")
    piped.put(y__b="2,b\n")
    assert [row.File for row in piped.ask("ALTER PIPE db.p REFRESH PREFIX = 'y'")] == ["y/b.csv"]
    assert piped.lake.run_pipe("db.p").files_loaded == 2
    assert piped.lake.run_pipe("db.p").files == 0
    assert piped.rows() == [(1, "a"), (2, "b"), (3, "c")]
    assert piped.lake.run_pipe("db.p", force=True, prefix="y/a").files_loaded == 1


def test_a_file_that_comes_older_than_the_history_is_the_problem_of_the_pipe_until_a_run_takes_it(
    piped: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped.put(a="1,a\n")
    piped.lake.run_pipe("db.p")
    later = datetime.now(UTC) + timedelta(days=20)
    monkeypatch.setattr("tidemark.pipes.driver.job_run_pipe.utc_now", lambda: later)
    piped.put(late="2,b\n")
    report = piped.lake.run_pipe("db.p")
    assert (report.files, report.left_out, report.first_left_out) == (0, 1, "late.csv")
    assert piped.lake.run_pipe("db.p").left_out == 0
    (pipe,) = piped.lake.show_pipes()
    assert str(pipe.problem).startswith("1 files were left out, since they are older than the history")
    assert "late.csv" in status_of(piped)["error"]
    assert piped.lake.run_pipe("db.p", force=True, prefix="late").rows_loaded == 1
    assert "error" not in status_of(piped)


def test_limits_bound_the_batches_of_a_run(piped: Desk) -> None:
    for number in range(5):
        piped.put(**{f"f{number}": f"{number},n\n"})
    report = piped.lake.run_pipe("db.p", max_files=2, batches=2)
    assert (report.batches, report.files, report.pending) == (2, 4, 1)
    assert piped.lake.run_pipe("db.p").files == 1
    with pytest.raises(InvalidArgument, match="max_files"):
        piped.lake.run_pipe("db.p", max_files=0)


def test_a_pipe_is_shown_and_described_as_there(piped: Desk) -> None:
    (shown,) = piped.ask("SHOW PIPES LIKE 'p' IN SCHEMA db")
    assert piped.ask("SHOW PIPES IN SCHEMA other") == []
    assert shown.asDict() == {
        **dict.fromkeys(("database_name", "owner", "notification_channel", "integration", "pattern")),
        **dict.fromkeys(("error_integration", "owner_role_type", "invalid_reason")),
        "created_on": shown.created_on,
        "name": "p",
        "schema_name": "db",
        "definition": COPY,
        "comment": "first",
        "kind": "STAGE",
    }
    piped.ask("ALTER PIPE db.p SET COMMENT = 'second'")
    assert piped.one("DESCRIBE PIPE db.p").comment == "second"
    piped.ask("ALTER PIPE db.p UNSET COMMENT")
    assert piped.one("DESC PIPE db.p").comment is None
    assert piped.status("ALTER PIPE IF EXISTS nobody SET COMMENT = 'x'") == "Statement executed successfully."
    assert "not allowed in a pipe" in piped.refused(f"CREATE PIPE x AS {COPY} ON_ERROR = ABORT_STATEMENT")
    assert "not allowed in a pipe" in piped.refused(f"CREATE PIPE x AS {COPY} FORCE = TRUE")
