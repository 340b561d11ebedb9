"""A statement reaches its target once, and nothing counts as done that the target's log does not show."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from delta.exceptions import ConcurrentTransactionException

from tests.engine.statements import delivering, make, rows_of, statement, window
from tidemark.delivery.driver.exactly_once import fence_statement, find_delivery, write_statement
from tidemark.delivery.model.marks import MarkKind, parse_mark
from tidemark.delivery.planning.delivery import Finding
from tidemark.errors import (
    Fenced,
    JobCancelled,
    SerialReused,
    Superseded,
    TargetChanged,
    TargetNotDelta,
    TargetNotFound,
    TargetRewound,
)
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA
from tidemark.lake.delta_log import DeltaLog

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark):
    return spark.newSession()


@pytest.fixture
def target(spark, tmp_path):
    path = tmp_path / "a target 1%é"
    make(spark, path, [(1, "a")])  # a session of its own would get no copy
    return path


def insert(session, path, *rows):
    frame = session.createDataFrame(list(rows), "id BIGINT, v STRING")
    return lambda: frame.write.format("delta").mode("append").save(str(path))


def sql(session, path, text):
    return lambda: session.sql(text.format(f"delta.`{path}`"))


def test_a_second_run_writes_nothing_and_brings_the_same_evidence(session, target):
    stmt = statement(target)
    first = write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    again = write_statement(session, delivering(), stmt, insert(session, target, (3, "c")))
    assert rows_of(session, target) == [(1, "a"), (2, "b")]
    assert (first.found, again.found) == (False, True)
    assert replace(again, found=False) == first
    assert first.rows == {"inserted": 1}
    assert first.commit_version == DeltaLog.open(str(target)).head() == 1
    (commit,) = DeltaLog.open(str(target)).commits(0, 1)
    assert first.bytes == sum(file.size for file in commit.adds)


def test_the_commit_carries_the_mark_and_the_session_keeps_no_setting(session, target):
    stmt = statement(target)
    write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    (commit,) = DeltaLog.open(str(target)).commits(0, 1)
    mark = parse_mark(commit.user_metadata)
    assert mark == delivering().mark(stmt, MarkKind.WRITE)
    assert commit.transactions == {"tidemark/uid-1/1": 1}
    assert [session.conf.get(name, None) for name in (APP_ID, TXN_VERSION, USER_METADATA)] == [None, None, None]


def test_the_session_keeps_no_setting_after_a_failure(session, target):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_statement(session, delivering(), statement(target), fail)
    assert [session.conf.get(name, None) for name in (APP_ID, TXN_VERSION, USER_METADATA)] == [None, None, None]
    assert find_delivery(delivering(), statement(target)).finding is Finding.FREE


def test_a_delete_without_a_match_leaves_its_mark_all_the_same(session, target):
    stmt = statement(target)
    delete = sql(session, target, "DELETE FROM {} WHERE id = 99")
    evidence = write_statement(session, delivering(), stmt, delete)
    assert (evidence.commit_version, evidence.found) == (1, False)
    assert write_statement(session, delivering(), stmt, delete).found
    (commit,) = DeltaLog.open(str(target)).commits(0, 1)
    assert (commit.adds, commit.removes) == ((), ())


@pytest.mark.parametrize(
    ("text", "rows", "after"),
    [
        ("DELETE FROM {} WHERE id = 1", {"deleted": 1}, []),
        ("UPDATE {} SET v = 'z' WHERE id = 1", {"updated": 1}, [(1, "z")]),
        ("UPDATE {} SET v = 'z' WHERE id = 99", {"updated": 0}, [(1, "a")]),
        ("INSERT OVERWRITE {} VALUES (7, 'g'), (8, 'h')", {"inserted": 2}, [(7, "g"), (8, "h")]),
        (
            "MERGE INTO {} AS t USING (SELECT 1 AS id, 'm' AS v UNION ALL SELECT 2, 'n') s ON s.id = t.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            {"inserted": 1, "updated": 1, "deleted": 0},
            [(1, "m"), (2, "n")],
        ),
    ],
)
def test_every_kind_of_statement_happens_once_and_counts_its_rows(session, target, text, rows, after):
    stmt = statement(target)
    evidence = write_statement(session, delivering(), stmt, sql(session, target, text))
    assert evidence.rows == rows
    assert write_statement(session, delivering(), stmt, sql(session, target, text)).found
    assert rows_of(session, target) == after


def test_a_fence_forbids_the_write_and_is_never_read_as_one(session, target):
    stmt = statement(target)
    assert fence_statement(session, delivering(), stmt).finding is Finding.FENCED
    assert fence_statement(session, delivering(), stmt).finding is Finding.FENCED
    with pytest.raises(Fenced):
        write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    assert rows_of(session, target) == [(1, "a")]
    assert DeltaLog.open(str(target)).head() == 1


def test_a_fence_that_comes_after_the_write_finds_the_write(session, target):
    stmt = statement(target)
    write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    assert fence_statement(session, delivering(), stmt).finding is Finding.DELIVERED


def test_a_late_writer_is_stopped_by_a_fence_that_came_while_it_wrote(spark, session, target):
    """Its own look found nothing, so only Delta's transaction number can stop it (V1, V10)."""
    stmt = statement(target)
    started = Event()
    slow = "INSERT INTO {} SELECT 2, coalesce(reflect('java.lang.Thread', 'sleep', 3000L), 'b')"

    def write_slowly():
        started.set()
        sql(session, target, slow)()

    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(write_statement, session, delivering(), stmt, write_slowly)
        started.wait()
        assert fence_statement(spark.newSession(), delivering(), stmt).finding is Finding.FENCED
        with pytest.raises(Fenced):
            late.result()
    assert rows_of(session, target) == [(1, "a")]


def test_a_late_writer_with_the_number_of_a_finished_write_changes_nothing(spark, session, target):
    """The retry writes between the late writer's look and its commit: the rows are there once."""
    stmt = statement(target)
    other = spark.newSession()

    def write_late():
        write_statement(other, delivering(), stmt, insert(other, target, (2, "b")))
        insert(session, target, (2, "b"))()

    assert write_statement(session, delivering(), stmt, write_late).commit_version == 1
    assert rows_of(session, target) == [(1, "a"), (2, "b")]


def test_a_restore_below_the_write_is_said_and_never_taken_as_done(session, target):
    stmt = statement(target)
    write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    session.sql(f"RESTORE TABLE delta.`{target}` TO VERSION AS OF 0")
    with pytest.raises(TargetRewound):
        write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))


def test_a_restore_by_time_counts_too(session, target):
    stmt = statement(target)
    before = DeltaLog.open(str(target)).timestamp(0)
    write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    session.sql(f"RESTORE TABLE delta.`{target}` TO TIMESTAMP AS OF '{before:%Y-%m-%d %H:%M:%S.%f}'")
    assert find_delivery(delivering(), stmt).finding is Finding.REWOUND


def test_a_replaced_table_is_another_table(session, tmp_path):
    name = f"replaced_{tmp_path.name.replace('-', '_')}"
    session.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) USING delta LOCATION '{tmp_path}/t'")
    stmt = statement(tmp_path / "t")
    write_statement(session, delivering(), stmt, insert(session, tmp_path / "t", (2, "b")))
    session.sql(f"CREATE OR REPLACE TABLE {name} (id BIGINT, v STRING) USING delta LOCATION '{tmp_path}/t'")
    with pytest.raises(TargetChanged) as changed:
        write_statement(session, delivering(), stmt, insert(session, tmp_path / "t", (2, "b")))
    assert changed.value.facts["expected"] == stmt.target.table_id
    session.sql(f"DROP TABLE {name}")


def test_a_recreated_table_with_fewer_versions_is_another_table(session, target):
    insert(session, target, (5, "e"))()
    stmt = statement(target)
    shutil.rmtree(target)
    make(session, target, [(9, "x")])
    with pytest.raises(TargetChanged):
        write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))


def test_a_dropped_target_and_a_target_of_another_kind_are_named(session, target, tmp_path):
    stmt = statement(target)
    shutil.rmtree(target)
    with pytest.raises(TargetNotFound):
        write_statement(session, delivering(), stmt, lambda: None)
    session.range(1).write.parquet(str(target))
    with pytest.raises(TargetNotDelta):
        write_statement(session, delivering(), stmt, lambda: None)


def test_an_expired_entry_does_not_hide_the_mark(session, target):
    stmt = statement(target)
    write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))
    session.sql(
        f"ALTER TABLE delta.`{target}` SET TBLPROPERTIES ('delta.setTransactionRetentionDuration'='interval 0 seconds')"
    )
    insert(session, target, (3, "c"))()
    assert write_statement(session, delivering(), stmt, insert(session, target, (2, "b"))).found
    assert rows_of(session, target) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_later_number_means_that_somebody_else_went_on(session, target):
    stmt = statement(target)
    write_statement(session, delivering(window(start=1, end=2)), replace(stmt, txn_version=2), lambda: None)
    with pytest.raises(Superseded):
        write_statement(session, delivering(), stmt, insert(session, target, (2, "b")))


def test_a_number_that_was_used_for_another_window_is_no_delivery(session, target):
    """A control store that was restored from a backup gives numbers out again."""
    used = statement(target)
    write_statement(session, delivering(window(end=7)), used, insert(session, target, (7, "g")))
    with pytest.raises(SerialReused):
        write_statement(session, delivering(), used, insert(session, target, (2, "b")))
    with pytest.raises(SerialReused):  # from before the base version: Delta skips in silence
        write_statement(session, delivering(), statement(target), insert(session, target, (2, "b")))
    assert rows_of(session, target) == [(1, "a"), (7, "g")]


def test_other_writers_of_the_target_do_not_disturb(spark, session, target):
    stmt = statement(target)
    other = spark.newSession()
    calls = []

    def conflict_once():
        calls.append(1)
        if len(calls) == 1:
            insert(other, target, (4, "d"))()
            raise ConcurrentTransactionException("try again")
        insert(session, target, (2, "b"))()

    assert not write_statement(session, delivering(), stmt, conflict_once).found
    assert rows_of(session, target) == [(1, "a"), (2, "b"), (4, "d")]


def test_a_writer_that_others_come_before_waits_for_a_while_each_time_and_gives_up_at_last(session, target):
    calls, pauses = [], []

    def conflict():
        calls.append(1)
        raise ConcurrentTransactionException("try again")

    with pytest.raises(ConcurrentTransactionException):
        write_statement(session, delivering(attempts=12, pause=pauses.append), statement(target), conflict)
    assert (len(calls), len(pauses)) == (12, 11)
    assert all(0 <= pause <= min(10, 0.2 * 2**number) for number, pause in enumerate(pauses))
    assert len(set(pauses)) > 1


def test_nothing_is_written_once_the_job_is_to_stop(session, target):
    def stop():
        raise JobCancelled(key="k")

    with pytest.raises(JobCancelled):
        write_statement(session, delivering(stop_if_due=stop), statement(target), insert(session, target, (2, "b")))
    assert DeltaLog.open(str(target)).head() == 0


def test_generated_and_identity_columns_do_not_hinder_the_empty_commit(session, tmp_path):
    path = tmp_path / "generated"
    session.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT NOT NULL, twice BIGINT GENERATED ALWAYS AS (id * 2), "
        "n BIGINT GENERATED ALWAYS AS IDENTITY) USING delta"
    )
    assert fence_statement(session, delivering(), statement(path)).finding is Finding.FENCED
