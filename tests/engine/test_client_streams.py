"""Streams as the client shows and consumes them; each test names the rules that it is about."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from tests.table_templates import put_table
from tidemark.client import Offset, Stream, Timestamp, Version, connect
from tidemark.errors import (
    InvalidArgument,
    NotADeltaTable,
    RowTrackingDisabled,
    SourceRecreated,
    StatementRefused,
    StreamExists,
    StreamLocked,
    StreamNotFound,
    StreamOnStream,
    StreamStale,
    TableNotFound,
    TargetNotFound,
    TransactionOpen,
    ViewTextMissing,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


class Clock:
    """The wall clock, which a test may set forward."""

    ahead = timedelta()

    def __call__(self):
        return datetime.now(UTC) + self.ahead


class Bench:
    """A connected client, a source `t` (id, v) with rows 1 a and 2 b, and an empty target `log`, all by path."""

    def __init__(self, spark, path):
        self.spark = spark
        self.clock = Clock()
        self.lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path), clock=self.clock, who="ann")
        self.t, self.log = f"delta.`{path}/src/t`", f"delta.`{path}/mart/log`"
        self.path = path
        made = f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta {TRACKED}"
        put_table(spark, path / "src/t", made, "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
        put_table(spark, path / "mart/log", "CREATE TABLE {t} (id BIGINT, v STRING, action STRING) USING delta")

    def run(self, *statements):
        for statement in statements:
            self.spark.sql(statement.format(t=self.t, log=self.log))

    def create(self, name="s", **more):
        return self.lake.create_stream(name, on=self.t, **more)

    def seen(self, name="s", frame=None):
        """(id, v, action, is_update) of the stream's rows, sorted."""
        rows = (self.lake.stream(name) if frame is None else frame).select("id", "v", f"`{ACTION}`", f"`{IS_UPDATE}`")
        return sorted((tuple(row) for row in rows.collect()), key=str)

    def logged(self):
        return sorted((tuple(row) for row in self.spark.sql(f"SELECT * FROM {self.log}").collect()), key=str)

    def offset(self, name="s"):
        return self.lake.describe_stream(name).offset_version

    def consume(self, name="s"):
        with self.lake.transaction() as tx:
            tx.sql(self.copy(name))

    def write_and(self, act, *statements):
        with self.lake.transaction() as tx:
            for statement in statements:
                tx.sql(statement)
            if act is not None:
                act()

    def copy(self, name="s", where="true"):
        return f"INSERT INTO mart.log SELECT id, v, METADATA$ACTION FROM {name} WHERE {where}"

    def head(self, table="src/t"):
        return DeltaLog.open(f"{self.path}/{table}").head()


def fail():
    raise ZeroDivisionError


@pytest.fixture
def bench(spark, tmp_path):
    bench = Bench(spark, tmp_path)
    yield bench
    bench.lake.close()


def test_R1_R2_R31_R40_streams_start_now_are_independent_and_agree_on_row_ids(bench):
    bench.create("s")
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    bench.create("later")
    bench.run("INSERT INTO {t} VALUES (4, 'd')")
    assert bench.seen("s") == [(3, "c", "INSERT", False), (4, "d", "INSERT", False)]
    assert bench.seen("later") == [(4, "d", "INSERT", False)]
    ids = {row.id: row[ROW_ID] for row in bench.lake.stream("s").collect()}
    assert {row.id: row[ROW_ID] for row in bench.lake.stream("later").collect()} == {4: ids[4]}
    bench.consume("s")
    assert (bench.seen("s"), len(bench.seen("later"))) == ([], 1)


def test_a_transaction_reads_and_takes_what_comes_before_rows_change_under_other_ids(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    rows = bench.spark.read.format("delta").load(f"{bench.path}/src/t").coalesce(1)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(f"{bench.path}/src/t")
    bench.run("UPDATE {t} SET v = 'z' WHERE id = 3")
    assert bench.lake.has_data("s", exact=True)
    with bench.lake.transaction() as tx:
        assert bench.seen(frame=tx.stream("s")) == [(3, "c", "INSERT", False)]
        tx.sql(bench.copy())
    assert bench.logged() == [(3, "c", "INSERT")]
    assert bench.seen() == [(3, "c", "DELETE", True), (3, "z", "INSERT", True)]


def test_a_restore_behind_rows_with_other_ids_comes_in_the_next_window(bench):
    bench.create()
    start = bench.head()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    rows = bench.spark.read.format("delta").load(f"{bench.path}/src/t").coalesce(1)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(f"{bench.path}/src/t")
    bench.run(f"RESTORE TABLE {{t}} TO VERSION AS OF {start}")
    bench.consume()
    assert (bench.logged(), bench.offset()) == ([(3, "c", "INSERT")], start + 2)
    bench.consume()
    assert (bench.offset(), bench.lake.has_data("s")) == (bench.head(), False)
    both = [(1, "a", "DELETE"), (1, "a", "INSERT"), (2, "b", "DELETE"), (2, "b", "INSERT")]
    assert bench.logged() == [*both, (3, "c", "DELETE"), (3, "c", "INSERT")]


def test_R3_row_tracking_is_turned_on_only_on_request_and_the_offset_comes_after_it(bench, tmp_path):
    bench.run("CREATE TABLE delta.`" + str(tmp_path / "plain") + "` USING delta AS SELECT 1 AS id, 'a' AS v")
    plain = f"{tmp_path}/plain"
    with pytest.raises(RowTrackingDisabled, match="ALTER TABLE"):
        bench.lake.create_stream("p", on=plain)
    assert bench.head("plain") == 0
    created = bench.lake.create_stream("p", on=plain, enable_row_tracking=True)
    assert created.offset_version == bench.head("plain") > 0
    assert (bench.lake.has_data("p"), bench.seen("p")) == (False, [])


def test_R4_R130_defaults_and_what_describe_says(bench):
    made = bench.create(comment="for tests")
    assert bench.lake.describe_stream("S") == made
    assert bench.lake.show_streams() == (made,)
    kinds = (made.name, made.mode, made.type, made.source_type, made.comment)
    assert kinds == ("s", "DEFAULT", "DELTA", "Table", "for tests")
    assert (made.table_name, made.base_tables, made.stale, made.invalid_reason) == (bench.t, (bench.t,), False, "N/A")
    assert made.stale_after == made.created_on + timedelta(days=7)
    bench.clock.ahead = timedelta(days=8)
    assert bench.lake.describe_stream("s").stale


def test_objects_of_every_kind_are_shown_in_one_list(bench):
    bench.create("s")
    bench.lake.create_change_stream("c", bench.t, keys=["id"])
    shown = [(one.kind, one.name, one.state, one.severity.value) for one in bench.lake.show_objects()]
    assert shown == [("stream", "s", "undelivered", "waiting"), ("change_stream", "c", "watching", "ok")]
    assert [one.name for one in bench.lake.show_objects(kind="change_stream")] == ["c"]
    assert bench.lake.show_objects(problems=True) == ()
    with pytest.raises(InvalidArgument, match="kind='table': one of stream"):
        bench.lake.show_objects(kind="table")


def test_R7_R12_names_are_taken_once_and_replacing_loses_the_place(bench):
    bench.create("s")
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    with pytest.raises(StreamExists):
        bench.create("S")
    assert bench.create("s", if_not_exists=True).offset_version == 1
    with pytest.raises(InvalidArgument):
        bench.create("s", or_replace=True, if_not_exists=True)
    assert bench.create("s", or_replace=True).offset_version == 2
    bench.lake.drop_stream("s")
    with pytest.raises(StreamNotFound):
        bench.lake.stream("s")
    bench.lake.drop_stream("s", if_exists=True)


def test_R8_R110_a_point_in_the_past_for_streams_and_changes(bench):
    bench.run("INSERT INTO {t} VALUES (3, 'c')", "DELETE FROM {t} WHERE id = 1")
    time = DeltaLog.open(f"{bench.path}/src/t").timestamp(2)
    points = {
        "at": bench.create("at", at=Version(2)),
        "before": bench.create("before", before=Version(2)),
        "time": bench.create("time", at=Timestamp(time)),
        "before_time": bench.create("before_time", before=Timestamp(time)),
        "now": bench.create("now", at=Offset(seconds=0)),
        "stream": bench.create("stream", at=Stream("before")),
    }
    found = {name: point.offset_version for name, point in points.items()}
    assert found == {"at": 2, "before": 1, "time": 2, "before_time": 1, "now": 3, "stream": 1}
    assert bench.lake.clone_stream("before", "clone").offset_version == 1
    with pytest.raises(InvalidArgument):
        bench.create("future", at=Offset(seconds=60))
    with pytest.raises(StreamNotFound):
        bench.create("x", at=Stream("nobody"))
    changes = bench.lake.changes(bench.t, at=1, end="2")
    assert bench.seen(frame=changes) == [(3, "c", "INSERT", False)]
    with pytest.raises(InvalidArgument):
        bench.lake.changes(bench.t)


def test_R10_initial_rows_come_first_and_the_changes_since_creation_after_them(bench):
    bench.create(show_initial_rows=True)
    bench.run("UPDATE {t} SET v = 'z' WHERE id = 1", "INSERT INTO {t} VALUES (3, 'c')")
    assert bench.seen() == [(1, "a", "INSERT", False), (2, "b", "INSERT", False)]
    assert bench.lake.has_data("s")
    bench.consume()
    assert bench.logged() == [(1, "a", "INSERT"), (2, "b", "INSERT")]
    assert bench.offset() == 1
    assert bench.seen() == [(1, "a", "DELETE", True), (1, "z", "INSERT", True), (3, "c", "INSERT", False)]


def test_R9_R91_bad_sources_are_named(bench, tmp_path):
    bench.create("s")
    with pytest.raises(TableNotFound):
        bench.lake.create_stream("x", on="no.such_table")
    with pytest.raises(StreamOnStream):
        bench.lake.create_stream("x", on="s")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("x")
    with pytest.raises(NotADeltaTable):
        bench.lake.create_stream("x", on=f"{tmp_path}/files")
    bench.spark.sql("CREATE OR REPLACE TEMPORARY VIEW a_view AS SELECT 1 AS id")
    with pytest.raises(ViewTextMissing, match="a_view"):
        bench.lake.create_stream("x", on="a_view")
    with pytest.raises(InvalidArgument, match="external tables"):
        bench.create("x", mode="insert_only")


@pytest.mark.quick
def test_R13_R14_R15_a_write_takes_the_whole_window_whatever_its_filter(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c'), (4, 'd')")
    with bench.lake.transaction() as tx:
        tx.sql(bench.copy(where="id = 4"))
    assert (bench.logged(), bench.seen(), bench.offset()) == ([(4, "d", "INSERT")], [], 2)
    bench.run("INSERT INTO {t} VALUES (5, 'e')")
    with bench.lake.transaction() as tx:
        tx.sql(bench.copy(where="0 = 1"))
    assert (len(bench.logged()), bench.offset()) == (1, 3)


def test_R16_reading_never_advances(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    for _ in range(2):
        assert len(bench.seen()) == 1
    with bench.lake.transaction() as tx:
        assert tx.stream("s").count() == 1
        assert tx.sql("SELECT count(*) FROM s").collect()[0][0] == 1
    assert bench.offset() == 1


def test_R17_R18_a_rollback_and_a_failure_leave_no_trace(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    with pytest.raises(ZeroDivisionError):
        bench.write_and(fail, bench.copy())
    assert (bench.head("mart/log"), bench.offset(), len(bench.seen())) == (0, 1, 1)
    with pytest.raises(StatementRefused, match="nope"):
        bench.write_and(None, bench.copy(), "INSERT INTO mart.log SELECT nope, v, 'x' FROM s")
    assert (bench.logged(), bench.offset()) == ([], 1)
    failing = bench.lake.describe_stream("s").health
    assert (failing.failures_in_row, failing.last_error_type) == (1, "StatementRefused")
    bench.consume()
    assert bench.logged() == [(3, "c", "INSERT")]
    well = bench.lake.describe_stream("s").health
    assert (well.failures, well.failures_in_row, well.consumptions, well.rows_delivered) == (1, 0, 1, 1)


def test_R18_bad_statements_are_refused_when_they_are_given(bench):
    bench.create()
    with bench.lake.transaction() as tx:
        with pytest.raises(StatementRefused):
            tx.sql("DROP TABLE mart.log")
        with pytest.raises(StatementRefused, match="first statement"):
            tx.sql("INSERT INTO mart.log VALUES (1, 'a', 'x')")
        with pytest.raises(TargetNotFound):
            tx.sql("INSERT INTO mart.missing SELECT * FROM s")
        tx.rollback()
    assert bench.head("mart/log") == 0


def test_R20_R21_R25_a_transaction_sees_one_window_whatever_is_committed_meanwhile(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    with bench.lake.transaction() as tx:
        bench.run("INSERT INTO {t} VALUES (4, 'd')")
        first = bench.seen(frame=tx.stream("s"))
        tx.sql(bench.copy())
        bench.run("DELETE FROM {t} WHERE id = 3")
        assert bench.seen(frame=tx.stream("s")) == first == [(3, "c", "INSERT", False)]
        assert tx.sql("SELECT count(*) FROM s a JOIN s b ON a.id = b.id").collect()[0][0] == 1
    assert (bench.logged(), bench.offset()) == ([(3, "c", "INSERT")], 2)
    assert bench.seen() == [(3, "c", "DELETE", False), (4, "d", "INSERT", False)]


def test_R22_all_streams_of_a_transaction_move_or_none(bench):
    bench.create("a")
    bench.create("b")
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    with pytest.raises(ZeroDivisionError):
        bench.write_and(fail, bench.copy("a"), bench.copy("b"))
    assert (bench.offset("a"), bench.offset("b")) == (1, 1)
    with bench.lake.transaction() as tx:
        tx.sql(bench.copy("a"))
        tx.sql(bench.copy("b"))
    assert (bench.offset("a"), bench.offset("b"), len(bench.logged())) == (2, 2, 2)


def test_R23_R24_R41_a_stream_in_use_is_locked_and_nothing_is_delivered_twice(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    early, late = bench.lake.transaction(), bench.lake.transaction()
    early.sql(bench.copy())
    with pytest.raises(StreamLocked):
        late.sql(bench.copy())
    with pytest.raises(TransactionOpen):
        bench.lake.drop_stream("s")
    with pytest.raises(TransactionOpen):
        bench.lake.advance_stream("s")
    early.commit()
    assert late.commit() is None
    bench.run("INSERT INTO {t} VALUES (4, 'd')")
    bench.consume()
    assert bench.logged() == [(3, "c", "INSERT"), (4, "d", "INSERT")]


def test_R24_a_transaction_that_began_before_anothers_commit_gets_nothing_of_it(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')")
    late = bench.lake.transaction()
    bench.run("INSERT INTO {t} VALUES (4, 'd')")
    bench.consume()
    late.sql(bench.copy())
    late.commit()
    assert (len(bench.logged()), bench.offset()) == (2, 3)


def test_R26_advancing_skips_and_never_goes_back(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c')", "INSERT INTO {t} VALUES (4, 'd')")
    assert bench.lake.advance_stream("s", Version(2)).offset_version == 2
    assert bench.seen() == [(4, "d", "INSERT", False)]
    with pytest.raises(InvalidArgument):
        bench.lake.advance_stream("s", Version(1))
    assert bench.lake.advance_stream("s", why="not needed").offset_version == 3


def test_R27_R28_R29_R30_columns_actions_pairs_and_stable_ids(bench):
    bench.create()
    bench.run("INSERT INTO {t} VALUES (3, 'c'), (3, 'c')", "UPDATE {t} SET v = 'z' WHERE id = 1")
    bench.run("DELETE FROM {t} WHERE id = 2")
    frame = bench.lake.stream("s")
    assert frame.columns == ["id", "v", ACTION, IS_UPDATE, ROW_ID]
    rows = frame.collect()
    assert {row[ACTION] for row in rows} == {"INSERT", "DELETE"}
    pair = [row for row in rows if row[IS_UPDATE]]
    assert sorted((row.v, row[ACTION]) for row in pair) == [("a", "DELETE"), ("z", "INSERT")]
    assert len({row[ROW_ID] for row in pair}) == 1
    assert len({row[ROW_ID] for row in rows if row.id == 3}) == 2
    was = pair[0][ROW_ID]
    bench.consume()
    bench.run("DELETE FROM {t} WHERE id = 1", "OPTIMIZE {t}")
    assert [(row.id, row[ROW_ID]) for row in bench.lake.stream("s").collect()] == [(1, was)]


def test_R60_append_only_shows_what_was_inserted_as_it_was(bench):
    bench.create(mode="append_only")
    bench.run("INSERT INTO {t} VALUES (3, 'c')", "UPDATE {t} SET v = 'z'", "DELETE FROM {t} WHERE id = 3")
    assert bench.seen() == [(3, "c", "INSERT", False)]
    assert bench.lake.describe_stream("s").mode == "APPEND_ONLY"


def test_R82_R91_a_recreated_source_is_another_table(bench):
    bench.create()
    shutil.rmtree(f"{bench.path}/src/t")
    bench.run("CREATE TABLE {t} (id BIGINT, v STRING) USING delta " + TRACKED)
    with pytest.raises(SourceRecreated):
        bench.lake.stream("s")
    with pytest.raises(SourceRecreated):
        bench.lake.has_data("s")
    broken = bench.lake.describe_stream("s")
    assert broken.stale
    assert "dropped" in broken.invalid_reason


def test_R84_an_offset_outside_the_history_is_stale(bench):
    bench.create()
    bench.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    bench.run(*["INSERT INTO {t} VALUES (3, 'c')"] * 2)
    for version in range(3):  # as log cleanup does once there is a checkpoint
        (bench.path / "src/t/_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(StreamStale):
        bench.lake.stream("s")
    assert bench.lake.describe_stream("s").stale


def test_R100_the_stream_has_the_current_schema(bench):
    bench.create()
    bench.run("ALTER TABLE {t} ADD COLUMN extra INT", "UPDATE {t} SET extra = 5 WHERE id = 1")
    bench.run("INSERT INTO {t} VALUES (3, 'c', 7)")
    rows = sorted(bench.lake.stream("s").collect(), key=lambda row: (row.id, row[ACTION]))
    assert [(row.id, row.extra, row[ACTION]) for row in rows] == [
        (1, None, "DELETE"),
        (1, 5, "INSERT"),
        (3, 7, "INSERT"),
    ]


def test_several_kinds_of_write_in_one_transaction_and_tables_of_the_catalog(bench, tmp_path):
    suffix = tmp_path.name.replace("-", "_")
    source, mirror = f"source_{suffix}", f"mirror_{suffix}"
    bench.run(f"CREATE TABLE {source} (id BIGINT, v STRING) USING delta {TRACKED}")
    bench.run(f"CREATE TABLE {mirror} (id BIGINT, v STRING) USING delta")
    assert bench.lake.create_stream("c", on=source).table_name == source
    bench.run(f"INSERT INTO {source} VALUES (1, 'a')")
    with bench.lake.transaction() as tx:
        tx.merge("c", mirror, ["id"])
        tx.append("c", mirror)
        tx.sql(f"UPDATE {mirror} SET v = 'z' WHERE {mirror}.id = 1")
        result = tx.commit()
    assert [dict(e.rows) for e in result.evidence][:2] == [{"inserted": 1, "updated": 0, "deleted": 0}, {"inserted": 1}]
    assert result.evidence[2].rows == {"updated": 2}
    assert all(e.bytes for e in result.evidence)  # each has written a file: MERGE, WRITE and UPDATE
    bench.run(f"DROP TABLE {source}", f"DROP TABLE {mirror}")
