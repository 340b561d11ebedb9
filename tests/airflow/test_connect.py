"""Spark Connect: the same jobs behind a server that is up, exactly once as elsewhere, and nothing left in it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from airflow.sdk import DAG

from tests.airflow.connect_server import ConnectServer, connect_server
from tests.airflow.consuming import FUNCTIONS, consume_once
from tests.airflow.runs import Lake, Outcome
from tests.ports import free_port
from tests.processes import command_of
from tests.tiers import nightly, some
from tests.until import wait_until
from tidemark.errors import JobCancelled, JobDied, JobMayRunOn, SparkServerUnreachable
from tidemark.hooks.spark_application import SparkApplication
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import StreamMode
from tidemark.operators._plans import WriteRequest
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.view_streams import CreateViewStreamOperator
from tidemark.streams.worker.streams import create_stream, get_stream

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e]
RunDag = Callable[..., Outcome]

MERGE = WriteRequest(streams=(), targets=("w.cold",), write_as="merge", keys=("id",))
APPEND = WriteRequest(streams=(), targets=("w.appended",), write_as="append")
OTHER_WAYS = (
    APPEND,
    WriteRequest(
        streams=(),
        targets=(),
        write_as="sql",
        sql="INSERT INTO w.deleted SELECT id FROM cf WHERE METADATA$ACTION = 'DELETE'",
    ),
    WriteRequest(streams=(), targets=("w.names", "w.counts"), write_as="connect_functions:keep_names"),
)
MERGED = [(1, "one"), (2, "zwei"), (4, "four")]  # into a mirror, however Spark is reached
TARGETS = {
    "w.appended": "id BIGINT, name STRING",
    "w.mirror": "id BIGINT, name STRING",
    "w.cold": "id BIGINT, name STRING",
    "w.deleted": "id BIGINT",
    "w.names": "id BIGINT, name STRING",
    "w.counts": "n BIGINT",
    "w.slow": "n BIGINT",
    "w.left": "seen STRING, mine BOOLEAN",
    "w.right": "seen STRING, mine BOOLEAN",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with connect_server(tmp_path_factory.mktemp("connect")) as running:
        yield running


@pytest.fixture
def warm(server: ConnectServer, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> TidemarkHook:
    """The hook with a Spark connection to the server."""
    return _hook_on(server.connection(), monkeypatch)


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    """Three rows, a changed one, a deleted one, a new one, streams that start behind the first commit, and targets."""
    lake.create("w.orders", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "w.orders")
    for name, columns in TARGETS.items():
        lake.create(name, columns)
    for mirror in ("w.mirror", "w.cold"):
        lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", mirror)
    lake.sql("INSERT INTO {t} VALUES (4, 'four')", "w.orders")
    lake.sql("UPDATE {t} SET name = 'zwei' WHERE id = 2", "w.orders")
    lake.sql("DELETE FROM {t} WHERE id = 3", "w.orders")
    return "w.orders"


_INGESTING = """
import sys
from pyspark.sql import SparkSession
from tidemark.client import connect
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
lake = connect(spark, sys.argv[2], lake_root=sys.argv[3])
with lake.ingest_client("notebook") as client:
    channel = client.open_channel("c", "w.landed")
    channel.insert_rows([{"n": 1}, {"n": 2}], "2")
    channel.flush()
    assert channel.latest_committed_offset_token() == "2"
print(lake.show_channels(like="c")[0].opened_by)
"""
_READING = """
import json, sys, threading, time
from pyspark.sql import SparkSession
from tidemark.replication.driver.source_rows import rows_read
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
slow = spark.range(0, 12, 1, 12).selectExpr("java_method('java.lang.Thread', 'sleep', 1000L)")
with rows_read(spark, 1200) as rows:
    reading = threading.Thread(target=slow.collect)
    reading.start()
    seen = [0]
    while reading.is_alive():
        seen.append(rows())
        time.sleep(0.2)
print(json.dumps(seen))
"""


def test_a_client_behind_the_server_commits_rows_of_channels_in_a_jvm_of_its_own(
    server: ConnectServer, lake: Lake, tmp_path: Path
) -> None:
    lake.create("w.landed", "n BIGINT", row_tracking=True)
    store = f"sqlite:///{tmp_path}/control.db"
    arguments = [f"sc://localhost:{server.port}/;token={server.token}", store, str(lake.root)]
    done = subprocess.run([sys.executable, "-c", _INGESTING, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["notebook"]
    assert lake.rows("w.landed") == [(1,), (2,)]


@nightly(
    "a client with views",
    "tests/engine/materialized/test_refresh_transactions.py::test_a_view_lives_through_refreshes_repeats_and_a_death",
)
def test_a_client_behind_the_server_keeps_views_and_answers(server: ConnectServer, lake: Lake, tmp_path: Path) -> None:
    lake.create("v.sold", "k INT, n INT", row_tracking=True)
    arguments = [f"sc://localhost:{server.port}/;token={server.token}", f"sqlite:///{tmp_path}/control.db"]
    arguments += [str(lake.root), str(lake.root / "v" / "sold")]
    command = [sys.executable, str(Path(__file__).parent / "connect_views.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    new = [[1, 30, 10], [2, 6, 1], [3, 30, 30]]
    assert json.loads(done.stdout) == {
        "shape": "sums",
        "status": "Dynamic table v.large successfully created.",
        "fresh": new,
        "in sql": [[2, 1]],
        "old": [[1, 10], [1, 20]],
        "beside a stream": [[1, 10], [30, 10]],
        "refreshed": ["changes", "changes"],
        "new": [new, [[1, 10], [1, 20], [3, 30]]],
        "origins": ["spark", "cache"],
        "answers": [[[1, 2], [2, 2], [3, 1]]] * 2,
        "frame": [[1, 2], [2, 2], [3, 1]],
        "counted": "log",
    }


def test_the_rows_of_a_backfill_are_told_by_the_share_of_its_tasks(server: ConnectServer) -> None:
    url = f"sc://localhost:{server.port}/;token={server.token}"
    done = subprocess.run([sys.executable, "-c", _READING, url], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    assert seen == sorted(seen)
    assert any(0 < rows < 1200 for rows in seen)


def test_without_a_server_the_error_says_so_and_nothing_is_lost(
    server: ConnectServer, source: str, lake: Lake, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    nobody = _hook_on(server.connection(port=free_port()), monkeypatch)
    _stream(nobody, "down")
    before = lake.version("w.slow")
    with pytest.raises(SparkServerUnreachable, match="No Spark Connect server answers at sc://localhost") as down:
        consume_once(nobody, "down", _by("count_for_ever"))
    assert server.token not in str(down.value)
    assert get_stream(nobody.open_store(), "down").offset.version == 1
    assert lake.version("w.slow") == before


def test_an_operator_delivers_through_the_server(
    run_dag: RunDag, warm: TidemarkHook, source: str, lake: Lake, server: ConnectServer
) -> None:
    with DAG("behind_connect", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="cm", on="w.orders", at=1)
        create >> ConsumeStreamOperator(task_id="merge", stream="cm", target="w.mirror", write_as="merge", keys=["id"])
    done = run_dag(dag)
    assert done.state == "success"
    assert lake.rows("w.mirror") == MERGED
    (event,) = done.events("cm")
    assert (event["stream"], event["from"], event["to"]) == ("cm", 1, 4)
    assert server.kept() == []


@nightly("five jobs in a server", "test_an_operator_delivers_through_the_server")
def test_every_other_way_to_write_delivers_each_change_once(
    warm: TidemarkHook, source: str, lake: Lake, server: ConnectServer
) -> None:
    _stream(warm, "cf")
    for _ in range(2):  # a second run of the same key delivers nothing again
        consume_once(warm, "cf", *OTHER_WAYS)
        assert lake.rows("w.appended") == [(2, "two"), (2, "zwei"), (3, "three"), (4, "four")]
        assert lake.rows("w.deleted") == [(2,), (3,)]
        assert lake.rows("w.names") == [(2, "zwei"), (4, "four")]
        assert lake.rows("w.counts") == [(4,)]
    assert server.kept() == []
    assert not list((lake.root / "_tidemark" / "log_only").glob("*"))


@nightly("a start of Spark more", "test_an_operator_delivers_through_the_server")
def test_spark_submit_and_connect_make_the_same_target(
    warm: TidemarkHook, source: str, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = _hook_on('{"conn_type": "spark", "host": "local[1]"}', monkeypatch)
    _stream(cold, "cold")
    consume_once(cold, "cold", MERGE)
    assert lake.rows("w.cold") == MERGED


@nightly("an application that makes the view, and two runs")
def test_a_view_of_the_servers_catalog_is_followed_by_operators(
    run_dag: RunDag, warm: TidemarkHook, lake: Lake, tmp_path: Path
) -> None:
    lake.create("v.orders", "id INT, customer INT", row_tracking=True)
    lake.create("v.customers", "id INT, city STRING", row_tracking=True)
    lake.create("v.sold", "id INT, city STRING")
    lake.sql("INSERT INTO {t} VALUES (1, 'Ulm'), (2, 'Bonn')", "v.customers")
    lake.sql("INSERT INTO {t} VALUES (10, 1)", "v.orders")
    orders, customers = (lake.sql_name(name) for name in ("v.orders", "v.customers"))
    view = f"SELECT o.id, c.city FROM {orders} o JOIN {customers} c ON o.customer = c.id"
    application = SparkApplication(warm.settings)
    application.run_application(Path(FUNCTIONS, "sql_application.py"), [f"CREATE VIEW sales AS {view}"], name="view")
    with DAG("view", schedule=None) as dag:
        create = CreateViewStreamOperator(task_id="create", stream="sales", on="default.sales", show_initial_rows=True)
        create >> ConsumeStreamOperator(
            task_id="sell", stream="sales", target="v.sold", write_as="merge", keys="id", outlets=[]
        )
    assert run_dag(dag).state == "success"
    assert lake.rows("v.sold") == [(10, "Ulm")]
    lake.sql("INSERT INTO {t} VALUES (11, 2)", "v.orders")
    lake.sql("UPDATE {t} SET city = 'Köln' WHERE id = 1", "v.customers")
    again = run_dag(dag, at=datetime(2026, 11, 2, tzinfo=UTC))
    assert (again.state, again.returned("create")["created"]) == ("success", False)
    assert lake.rows("v.sold") == [(10, "Köln"), (11, "Bonn")]
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')", "v.customers")
    lake.sql("UPDATE {t} SET city = 'Ulm' WHERE id = 1", "v.customers")
    with DAG("re-based", schedule=None) as dag:
        rebase = RebaseStreamOperator(task_id="rebase", stream="sales", why="no ids", keys=["ID"])
        rebase >> ConsumeStreamOperator(
            task_id="sell", stream="sales", target="v.sold", write_as="merge", keys="id", outlets=[]
        )
    assert run_dag(dag).state == "success"
    assert lake.rows("v.sold") == [(10, "Ulm"), (11, "Bonn")]


@nightly("an hour of flights behind the server")
def test_the_example_replays_its_flights_behind_the_server(
    warm: TidemarkHook, monkeypatch: pytest.MonkeyPatch, server: ConnectServer
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "dags"))
    submit = importlib.import_module("flights.submit")
    first, second = (submit.run_job("replay", days=1 / 24) for _ in range(2))
    assert first["hours"] == 1
    assert first["until"] == second["since"]


def test_a_job_killed_after_its_write_finds_it_on_the_retry(
    warm: TidemarkHook, source: str, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stream(warm, "killed")
    monkeypatch.setenv("TIDEMARK_KILL_AT", "write1.after")
    monkeypatch.setenv("TIDEMARK_KILL_ONCE", str(tmp_path / "once"))
    before = lake.version("w.appended")
    with pytest.raises(JobDied) as died:
        consume_once(warm, "killed", APPEND)
    assert died.value.exit_code == -9
    consume_once(warm, "killed", APPEND)
    assert lake.version("w.appended") == before + 1
    assert get_stream(warm.open_store(), "killed").offset.version == 4


@pytest.mark.parametrize("how", some(["cancelled", "killed"], now=["killed"]))
def test_a_job_that_is_ended_has_ended_in_the_server_too(
    warm: TidemarkHook, source: str, lake: Lake, server: ConnectServer, how: str
) -> None:
    stream = f"ended_{how}"
    _stream(warm, stream)
    before = lake.version("w.slow")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, stream, _by("count_for_ever"), job=job)
        _wait_for_the_count(server, running)
        commands = {child: " ".join(command_of(child)) for child in psutil.Process().children()}
        (driver,) = (child for child, command in commands.items() if "jobs/__main__.py" in command)
        assert server.token not in commands[driver]
        if how == "cancelled":
            job.cancel()
        else:
            os.kill(driver.pid, signal.SIGKILL)
        with pytest.raises(JobCancelled if how == "cancelled" else JobDied):
            running.result(timeout=60)
    wait_until(lambda: server.running_jobs() == 0, seconds=60)  # the server shows it a moment later
    assert lake.version("w.slow") == before


def test_a_server_that_stops_answering_leaves_the_job_counted_as_running(
    warm: TidemarkHook, source: str, server: ConnectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stream(warm, "unsure")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, "unsure", _by("count_for_ever"), job=job)
        _wait_for_the_count(server, running)
        driver: Any = job._submission
        driver._environment["SPARK_REMOTE"] = f"sc://localhost:{free_port()}"  # the way there is lost
        os.kill(driver.process_id, signal.SIGKILL)
        with pytest.raises(JobMayRunOn, match="counts as running until"):
            running.result(timeout=60)
    assert server.running_jobs() > 0
    driver._environment["SPARK_REMOTE"] = driver.url
    assert driver.end_session()
    wait_until(lambda: server.running_jobs() == 0, seconds=60)


@nightly("two jobs that wait for each other in one server")
def test_two_jobs_at_once_see_nothing_of_each_other(
    warm: TidemarkHook, source: str, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEETING", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_DRIVER_ENVIRONMENT", "MEETING, COVERAGE_*")
    for name in ("left", "right"):
        _stream(warm, name)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(consume_once, warm, name, _by("meet_the_other", f"w.{name}")) for name in ("left", "right")]
        for one in both:
            one.result(timeout=120)
    assert lake.rows("w.left") == [("", True)]
    assert lake.rows("w.right") == [("", True)]


def test_the_connections_test_has_each_side_read_the_others_file(
    warm: TidemarkHook, server: ConnectServer, lake: Lake
) -> None:
    well, said = warm.test_connection()
    assert well, said
    assert f"Spark: {pyspark.__version__} at sc://localhost:{server.port} reads what the worker writes" in said
    assert not list((lake.root / "_tidemark" / "log_only").glob("probe-*"))


def test_the_connections_test_names_the_file_that_the_server_does_not_see(
    server: ConnectServer, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    well, said = _hook_on(server.connection(), monkeypatch, lake_root="memory://lake").test_connection()
    assert not well
    assert "Lake memory://lake: written and read." in said
    assert "Spark cannot read memory://lake/_tidemark/log_only/probe-" in said
    assert "a directory that both mount at one place" in said


def test_the_connections_test_says_that_no_server_answers(
    server: ConnectServer, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    well, said = _hook_on(server.connection(port=free_port()), monkeypatch).test_connection()
    assert not well
    assert "Spark: NOT OK. No Spark Connect server answers at sc://localhost:" in said
    assert server.token not in said


def _hook_on(connection: str, monkeypatch: pytest.MonkeyPatch, **extra: str) -> TidemarkHook:
    monkeypatch.setenv("AIRFLOW_CONN_THE_SPARK", connection)
    tidemark = json.dumps({"conn_type": "tidemark", "extra": {"spark_conn_id": "the_spark", **extra}})
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", tidemark)
    return TidemarkHook()


def _stream(hook: TidemarkHook, name: str) -> None:
    create_stream(
        hook.open_store(),
        name=name,
        source=hook.table("w.orders"),
        mode=StreamMode.STANDARD,
        at_version=1,
        who="test",
    )


def _wait_for_the_count(server: ConnectServer, running: Future[None]) -> None:
    """Waits for a job that lasts, since the table of the target is read by short ones before."""
    wait_until(lambda: server.running_jobs(since=timedelta(seconds=3)) > 0 or running.done())


def _by(function: str, target: str = "w.slow") -> WriteRequest:
    return WriteRequest(streams=(), targets=(target,), write_as=f"connect_functions:{function}")
