"""Jobs: SQL and functions as writers, several statements, fences, dry runs, and when a job has to stop."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.engine.statements import KEY, make, rows_of, statement
from tests.table_templates import put_table
from tidemark.errors import from_record
from tidemark.jobs.files import read_spec, write_result
from tidemark.jobs.run import run
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import from_json, to_json, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import WriteAs
from tidemark.model.streams import StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.sql.statements import parse_statement
from tidemark.streams.driver.sql import query_text
from tidemark.streams.model.table_jobs import PREPARE, TablePath, TableVersion
from tidemark.streams.model.transaction_jobs import DRY_RUN, FENCE, WRITE, StatementsRequest, WindowsRequest

pytestmark = pytest.mark.spark

HERE = "tests.engine.writer_functions"


class Room:
    """A source with a window of one DELETE (2) and two INSERTs (3, 4), and two empty targets."""

    def __init__(self, spark, path, kind="STRING"):
        self.spark, self.path, self.lines = spark, path, []
        source = path / "source"
        put_table(
            spark,
            source,
            f"CREATE TABLE {{t}} (id BIGINT, v {kind}) USING delta",
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
            "INSERT INTO {t} VALUES (3, 'c'), (4, 'd')",
            "DELETE FROM {t} WHERE id = 2",
        )
        log = DeltaLog.open(str(source))
        start = log.head() - 2
        self.window = StreamWindow(
            "uid-1",
            "s",
            TableRef("source", log.uri, log.state().table_id),
            StreamMode.STANDARD,
            WindowKind.CHANGES,
            start,
            log.head(),
        )
        for name in ("mirror", "counts"):
            make(spark, path / name, [])

    def statement(self, number, target, **write):
        found = statement(self.path / target, number=number, **write)
        return _named(found, target)

    def spec(self, *statements, job=WRITE, ask=None, seconds=600):
        return JobSpec(
            kind=job.name,
            entry=job.entry,
            request=to_plain(ask or StatementsRequest((self.window,), statements)),
            store_id="store",
            workspace=f"{self.path}/work",
            result_uri=f"{self.path}/result.json",
            cancel_uri=f"{self.path}/cancel",
            deadline=datetime.now(UTC) + timedelta(seconds=seconds),
            key=KEY,
        )

    def run(self, *statements, **more):
        return run(self.spark, self.spec(*statements, **more), say=self.lines.append)

    def evidence(self, *statements):
        return WRITE.reported(self.run(*statements)).evidence

    def rows(self, target):
        return rows_of(self.spark, self.path / target)

    def head(self, target):
        return DeltaLog.open(str(self.path / target)).head()


def _named(found, name):
    from dataclasses import replace

    return replace(found, target=replace(found.target, name=name), write=replace(found.write, target=name))


@pytest.fixture
def room(spark, tmp_path):
    return Room(spark, tmp_path)


def test_several_targets_of_a_stream_read_its_change_set_once(spark, tmp_path):
    """The files of the source are gone when the first target has its rows. A CHAR column is read by Spark alone."""
    room = Room(spark, tmp_path, kind="CHAR(1)")
    make(spark, tmp_path / "appended", [])

    def say(line):
        if line.startswith("statement 1 of 3"):
            for file in (tmp_path / "source").rglob("*.parquet"):
                file.unlink()

    statements = (
        room.statement(1, "mirror"),
        room.statement(2, "counts", write_as=WriteAs.MERGE, keys=("id",)),
        room.statement(3, "appended"),
    )
    result = run(spark, room.spec(*statements), say=say)
    assert result.error is None
    assert room.rows("mirror") == room.rows("appended") == [(2, "b"), (3, "c"), (4, "d")]
    assert room.rows("counts") == [(3, "c"), (4, "d")]


def test_statements_run_in_order_and_a_second_run_finds_them_all(room):
    statements = (
        room.statement(1, "mirror", write_as=WriteAs.MERGE, keys=("id",)),
        room.statement(
            2,
            "counts",
            write_as=WriteAs.SQL,
            sql="INSERT INTO counts SELECT count(*), max(s.METADATA$ACTION) FROM s, mirror m WHERE m.id = 3",
            tables={"mirror": str(room.path / "mirror")},
        ),
    )
    result = room.run(*statements)
    assert result.error is None
    assert room.rows("mirror") == [(3, "c"), (4, "d")]
    assert room.rows("counts") == [(3, "INSERT")]
    assert [line.split(":")[0] for line in room.lines if line.startswith("stream")] == ["stream s, versions (4, 6]"]
    assert [line for line in room.lines if line.startswith("statement")] == [
        "statement 1 of 2 (merge into mirror) written: 2 inserted, 0 updated, 0 deleted, version 1",
        "statement 2 of 2 (sql into counts) written: 1 inserted, version 1",
    ]
    again = room.evidence(*statements)
    assert [(e.number, e.commit_version, e.found) for e in again] == [
        (1, 1, True),
        (2, 1, True),
    ]
    assert not list((room.path / "work").rglob("*.json"))


def test_nothing_is_written_when_a_later_statement_is_refused(room):
    first = room.statement(1, "mirror", write_as=WriteAs.MERGE, keys=("id",))
    for sql, problem in (
        ("INSERT INTO counts SELECT nope, 'x' FROM s", "nope"),
        ("INSERT INTO counts SELECT 1", "column"),
        ("DELETE FROM counts WHERE id IN (SELECT id FROM s)", "(?i)subquer"),
    ):
        result = room.run(first, room.statement(2, "counts", write_as=WriteAs.SQL, sql=sql))
        assert result.error is not None
        assert result.error.error == "StatementRefused"
        assert re.search(problem, str(from_record(result.error)))
    assert (room.head("mirror"), room.head("counts")) == (0, 0)


def test_a_function_writes_its_declared_targets_once(room):
    statements = [
        room.statement(n, target, write_as=WriteAs.FUNCTION, source=None, function=f"{HERE}:write_both")
        for n, target in ((1, "mirror"), (2, "counts"))
    ]
    assert room.run(*statements).error is None
    assert (room.rows("mirror"), room.rows("counts")) == ([(3, "c"), (4, "d")], [(3, "rows")])
    assert [e.found for e in room.evidence(*statements)] == [True, True]
    assert room.rows("counts") == [(3, "rows")]


def test_a_declared_target_that_the_function_leaves_out_gets_its_mark(room):
    statements = [
        room.statement(n, target, write_as=WriteAs.FUNCTION, source=None, function=f"{HERE}:write_one")
        for n, target in ((1, "mirror"), (2, "counts"))
    ]
    result = room.run(*statements)
    assert [(e.number, e.commit_version) for e in WRITE.reported(result).evidence] == [(1, 1), (2, 1)]
    assert (room.rows("mirror"), room.rows("counts")) == ([], [(3, "sql")])


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("write_twice", "StatementRefused", "second time"),
        ("write_elsewhere", "StatementRefused", "not a declared target"),
        ("write_from_another_session", "StatementRefused", "another Spark session"),
        ("no_such_function", "StatementRefused", "cannot be imported"),
        ("break_down", "JobFailed", "RuntimeError: the user's own mistake"),
        ("go_on_after_a_failure", "TargetDoesNotFit", "it has no column unknown"),
    ],
)
def test_what_a_function_may_not_do_is_said(room, name, error, message):
    stmt = room.statement(1, "counts", write_as=WriteAs.FUNCTION, source=None, function=f"{HERE}:{name}")
    result = room.run(stmt)
    assert result.error.error == error
    assert message in result.error.message


def test_a_fence_job_says_what_was_written_and_what_is_shut_out(room):
    first = room.statement(1, "mirror", write_as=WriteAs.MERGE, keys=("id",))
    second = room.statement(2, "counts", write_as=WriteAs.SQL, sql="INSERT INTO counts SELECT count(*), 'x' FROM s")
    room.run(first)
    for _ in range(2):
        report = FENCE.reported(room.run(first, second, job=FENCE))
        assert (report.fenced, report.written, report.lost) == ((2,), (1,), ())
        assert [e.number for e in report.evidence] == [1]
    assert room.run(second).error.error == "Fenced"
    assert room.rows("counts") == []


def test_a_dry_run_says_what_would_be_read_and_touches_nothing(room):
    result = room.run(job=DRY_RUN, ask=WindowsRequest((room.window,)))
    assert result.error is None
    reads = DRY_RUN.reported(result).reads["s"]
    assert (reads["from"], reads["to"]) == (room.window.start, room.window.end)
    assert len(reads) > 3
    assert from_json(JobResult, to_json(result)) == result
    assert room.head("mirror") == 0


def test_prepare_turns_row_tracking_on_once(room):
    path = str(room.path / "counts")
    once, again = (PREPARE.reported(room.run(job=PREPARE, ask=TablePath(path))) for _ in range(2))
    assert once == again == TableVersion(room.head("counts"))
    assert DeltaLog.open(path).state().row_tracking


def test_a_job_stops_at_its_deadline_and_at_the_cancel_marker(room):
    stmt = room.statement(1, "mirror", write_as=WriteAs.MERGE, keys=("id",))
    assert room.run(stmt, seconds=-1).error.error == "JobDeadlineExceeded"
    (room.path / "cancel").touch()
    assert room.run(stmt).error.error == "JobCancelled"
    assert room.head("mirror") == 0


def test_a_running_statement_is_cancelled_at_the_deadline(room):
    slow = "INSERT INTO counts SELECT id, reflect('java.lang.Thread', 'sleep', 60000L) FROM s"
    result = room.run(room.statement(1, "counts", write_as=WriteAs.SQL, sql=slow), seconds=6)
    assert result.error.error == "JobDeadlineExceeded"
    assert room.head("counts") == 0


def test_spec_and_result_travel_as_files_whole_or_not_at_all(room):
    spec = room.spec(room.statement(1, "mirror"))
    path = room.path / "a spec.json"
    path.write_text(to_json(spec))
    assert read_spec(str(path)) == spec
    assert read_spec(f"file://{str(path).replace(' ', '%20')}") == spec
    write_result(f"{room.path}/new/result.json", JobResult({"é": 1}))
    assert from_json(JobResult, (room.path / "new/result.json").read_text()) == JobResult({"é": 1})
    assert [p.name for p in (room.path / "new").iterdir()] == ["result.json"]


def test_streams_win_over_tables_of_the_same_name_but_not_over_the_target(spark):
    class Streams:
        names = ("s", "counts")

        def view(self, name):
            return f"view_of_{name}"

    parsed = parse_statement("INSERT INTO counts SELECT * FROM s JOIN other")
    text = query_text(parsed, Streams(), {"counts": "/c", "other": "/o", "s": "/not-this"})
    assert text == "INSERT INTO delta.`/c` SELECT * FROM view_of_s AS `s` JOIN delta.`/o` AS `other`"
