"""StreamSQLOperator: definitions and system functions without a JVM, writes exactly once, everything else refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode
from tidemark.operators.external_tables import RefreshExternalTableOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.streams.worker.streams import create_stream, get_stream, list_streams

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    """A table with two data commits after its creation, and one without row ids."""
    lake.create("q.source", "id BIGINT", row_tracking=True)
    for number in (1, 2):
        lake.sql(f"INSERT INTO {{t}} VALUES ({number})", "q.source")
    lake.create("q.untracked", "id BIGINT")
    lake.create("q.copy", "id BIGINT, action STRING")
    return "q.source"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: " ".join((caplog.text + capfd.readouterr().out).split())


def one(dag_id: str, sql: str, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, params={"table": "q.source"}) as dag:
        StreamSQLOperator(task_id="it", sql=sql, **arguments)
    return dag


def chain(dag_id: str, *statements: str) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        tasks = [StreamSQLOperator(task_id=f"t{n}", sql=sql) for n, sql in enumerate(statements)]
        for before, after in pairwise(tasks):
            before >> after
    return dag


def test_definitions_and_system_functions_start_no_jvm(
    run_dag: RunDag, source: str, spark_submit: StandIn, hook: TidemarkHook
) -> None:
    started = spark_submit("exit 9")
    dag = chain(
        "q_define",
        "CREATE STREAM a.s ON TABLE q.source AT(VERSION => 1) COMMENT = 'first'",
        "SELECT SYSTEM$STREAM_HAS_DATA('a.s') AS waits, SYSTEM$STREAM_GET_TABLE_TIMESTAMP('a.s')",
        "SELECT * FROM TABLE(SYSTEM$STREAM_BACKLOG('a.s'))",
        "CREATE STREAM twin CLONE a.s",
        "ALTER STREAM twin SET COMMENT = 'second'",
        "CREATE OR REPLACE STREAM late ON TABLE q.source AT(STREAM => 'a.s')",
        "DROP STREAM IF EXISTS nobody",
    )
    outcome = run_dag(dag)
    assert outcome.returned("t0") == [{"status": "Stream a.s successfully created."}]
    moment = DeltaLog.open(hook.table_uri(source)).timestamp(1)
    ((waits, nanoseconds),) = (row.values() for row in outcome.returned("t1"))
    assert (waits, nanoseconds // 1000) == (True, round(moment.timestamp() * 10**6))
    (version,) = outcome.returned("t2")
    assert (version["version"], version["change_records"], version["operation"]) == (2, 1, "INSERT")
    assert "already dropped" in outcome.returned("t6")[0]["status"]
    made = {stream.name: (stream.offset.version, stream.comment) for stream in list_streams(hook.open_store())}
    assert (made["a.s"], made["twin"], made["late"]) == ((1, "first"), (1, "second"), (1, None))
    assert not started.exists()


def test_R7_a_cleared_run_keeps_what_it_made_and_another_run_finds_the_name_taken(
    run_dag: RunDag, source: str, hook: TidemarkHook, said: Callable[[], str]
) -> None:
    dag = one("q_again", "CREATE OR REPLACE STREAM mine ON TABLE {{ params.table }}")
    run_dag(dag, AT)
    uid = get_stream(hook.open_store(), "mine").uid
    assert "by an earlier attempt of this run" in run_dag(dag, AT).returned("it")[0]["status"]
    assert get_stream(hook.open_store(), "mine").uid == uid
    run_dag(dag)
    assert get_stream(hook.open_store(), "mine").uid != uid
    assert run_dag(one("q_taken", "CREATE STREAM MINE ON TABLE q.source")).task("it") == "failed"
    assert "Object 'mine' already exists" in said()


def test_R13_R14_a_write_delivers_once_and_an_empty_window_starts_no_spark(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    run_dag(one("q_create", "CREATE STREAM delivered ON TABLE q.source AT(VERSION => 1)"))
    write = "INSERT INTO q.copy SELECT id, METADATA$ACTION FROM delivered"
    dag = one("q_write", write, stream="delivered")
    first = run_dag(dag, AT).returned("it")
    assert (first["stream"], first["from"], first["to"], first["rows"]) == ("delivered", 1, 2, 1)
    assert run_dag(dag, AT).returned("it") == first
    starts = warm_spark.read_text().count("\n")
    assert run_dag(one("q_write_more", write, skip_when_empty=True)).task("it") == "skipped"
    assert warm_spark.read_text().count("\n") == starts
    assert lake.rows("q.copy") == [(2, "INSERT")]


@pytest.mark.parametrize("named", [None, "order_chnages"])
def test_a_misspelt_stream_is_told_from_a_table_by_the_streams_with_similar_names(
    run_dag: RunDag, source: str, spark_submit: StandIn, said: Callable[[], str], named: str | None
) -> None:
    started = spark_submit("exit 9")
    run_dag(one("q_meant", "CREATE STREAM IF NOT EXISTS order_changes ON TABLE q.source"))
    write = "INSERT INTO q.copy SELECT id, METADATA$ACTION FROM order_chnages"
    dag = one(f"q_misspelt_{named}", write, **({} if named is None else {"stream": named}))
    assert run_dag(dag).task("it") == "failed"
    assert ("it reads no stream" if named is None else "Stream 'order_chnages' does not exist") in (told := said())
    assert "Did you mean 'order_changes'?" in told
    assert not started.exists()


def test_R3_row_tracking_is_turned_on_as_there(
    run_dag: RunDag, source: str, warm_spark: Path, hook: TidemarkHook
) -> None:
    assert run_dag(one("q_turn_on", "CREATE STREAM tracked ON TABLE q.untracked")).state == "success"
    log = DeltaLog.open(hook.table_uri("q.untracked"))
    assert log.state().row_tracking
    assert get_stream(hook.open_store(), "tracked").offset.version == log.head()


@pytest.fixture
def view(lake: Lake) -> Iterator[str]:
    """A view of Spark's catalog, on q.bases."""
    lake.create("q.bases", "id BIGINT")
    lake.spark.sql(f"CREATE VIEW q_seen AS SELECT id FROM {lake.sql_name('q.bases')} WHERE id > 1")
    yield "default.q_seen"
    lake.spark.sql("DROP VIEW q_seen")


def test_R70_R79_a_job_asks_spark_for_a_view_and_tracks_rows_of_its_tables(
    run_dag: RunDag, warm_spark: Path, view: str, hook: TidemarkHook
) -> None:
    create = f"CREATE STREAM IF NOT EXISTS seen ON VIEW {view}"
    dag = chain("q_view", create, "CREATE STREAM seen_twin CLONE seen", create)
    outcome = run_dag(dag, AT)
    assert [outcome.returned(f"t{n}")[0]["status"] for n in range(3)] == [
        "Stream seen successfully created.",
        "Stream seen_twin successfully created.",
        "seen already exists, statement succeeded.",
    ]
    log = DeltaLog.open(hook.table_uri("q.bases"))
    assert log.state().row_tracking
    for stream in (get_stream(hook.open_store(), name) for name in ("seen", "seen_twin")):
        assert stream.view is not None
        assert [base.version for base in stream.bases] == [log.head()]


def test_R66_a_task_notes_the_files_of_an_external_table(
    run_dag: RunDag, warm_spark: Path, lake: Lake, hook: TidemarkHook, tmp_path: Path
) -> None:
    arrived = tmp_path / "arrived"
    lake.spark.range(2).coalesce(1).write.parquet(str(arrived))
    with DAG("q_files", schedule=None) as dag:
        first = RefreshExternalTableOperator(
            task_id="first", external_table="q_arrived", location=str(arrived), file_format="parquet"
        )
        create = "CREATE STREAM arrivals ON EXTERNAL TABLE q_arrived INSERT_ONLY = TRUE"
        first >> StreamSQLOperator(task_id="create", sql=create)
    assert run_dag(dag, AT).returned("create") == [{"status": "Stream arrivals successfully created."}]
    lake.spark.range(2).coalesce(1).write.mode("append").parquet(str(arrived))
    refresh = one("q_refresh", "ALTER EXTERNAL TABLE q_arrived REFRESH")
    told = "External table q_arrived refreshed: 1 added, 0 overwritten, 0 removed."
    assert run_dag(refresh).returned("it") == [{"status": told}]
    stream = get_stream(hook.open_store(), "arrivals")
    assert hook.open_table(stream.source).head() == stream.offset.version + 1


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE STREAM x ON TABEL q.source", "SqlCompilationError: SQL compilation error, line 1, column 20"),
        ("CREATE STREAM x ON TABLE q.nowhere", "Object 'q.nowhere' does not exist or not authorized."),
        ("CREATE STREAM x ON TABLE there", "Object found is of type 'STREAM', not specified type 'TABLE'."),
        ("CREATE STREAM x ON TABLE q.source AT(VERSION => 99)", "Time travel data is not available"),
        ("CREATE STREAM x ON VIEW q.source", "Object found is of type 'TABLE', not specified type 'VIEW'."),
        ("ALTER EXTERNAL TABLE q.nowhere REFRESH", "Object 'q.nowhere' does not exist or not authorized."),
        ("SHOW STREAMS", "airflow tidemark streams list"),
        ("SELECT * FROM there", "a SELECT writes nothing"),
        ("SELECT * FROM q.source CHANGES(INFORMATION => DEFAULT) AT(VERSION => 1)", "lake.sql in a @task"),
        ("INSERT INTO q.copy VALUES (1, 'x')", "Use SparkSqlOperator"),
        ("BEGIN", "the task group stream_transaction"),
    ],
)
def test_anything_else_is_refused_with_what_to_use_instead(
    run_dag: RunDag,
    source: str,
    warm_spark: Path,
    hook: TidemarkHook,
    said: Callable[[], str],
    sql: str,
    named: str,
) -> None:
    create_stream(
        hook.open_store(),
        name="there",
        source=hook.table(source),
        mode=StreamMode.STANDARD,
        at_version=1,
        who="test",
        if_not_exists=True,
    )
    rendered = f"{{{{ {sql!r} }}}}"  # what stands in the file is refused when that is parsed
    assert run_dag(one("q_refused", rendered)).task("it") == "failed"
    assert named in said()
