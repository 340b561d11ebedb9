"""The warm Spark of a host: one server for equal settings, each change once whatever ends, and nothing for others."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.sdk import DAG

from tests.airflow.connect_server import SMALL, ConnectServer
from tests.airflow.consuming import FUNCTIONS, consume_once
from tests.airflow.runs import Lake, Outcome
from tests.airflow.warm_hook import CANCELLED, SESSION, end_warm_servers, ended_by_the_server, refusal_of, warm_hook
from tests.ports import lasting_port
from tests.processes import command_of
from tests.tiers import nightly
from tests.until import wait_until
from tidemark.errors import JobCancelled, JobDied, WarmSparkEnded, WarmSparkNotStarted
from tidemark.hooks import warm_driver
from tidemark.hooks.spark_application import SparkApplication
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.hooks.warm_spark import homes
from tidemark.model.jobs import JobResult
from tidemark.model.probe import PROBE, ProbeRequest
from tidemark.model.streams import StreamMode
from tidemark.operators._plans import WriteRequest
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.streams.worker.streams import create_stream, get_stream
from tidemark.warm_spark.home import ServerHome, is_alive
from tidemark.warm_spark.records import ServerRecord
from tidemark.warm_spark.slots import busy_slots

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e]
RunDag = Callable[..., Outcome]

MERGED = [(1, "one"), (2, "zwei"), (4, "four")]
TARGETS = {
    "m.mirror": "id BIGINT, name STRING",
    "m.appended": "id BIGINT, name STRING",
    "m.loud": "id BIGINT, name STRING",
    "m.slow": "n BIGINT",
}
APPEND = WriteRequest(streams=(), targets=("m.appended",), write_as="append")
LEFT_TASK = """
from tests.airflow.consuming import consume_once
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._plans import WriteRequest
consume_once(TidemarkHook(), "m_left", WriteRequest((), ("m.slow",), write_as="connect_functions:count_for_ever"))
"""
UI_PORT = lasting_port()
CONF = {**SMALL, "spark.ui.enabled": "true", "spark.ui.port": str(UI_PORT)}


@pytest.fixture(scope="module")
def jobs_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory of servers of its own; none of them outlives the module."""
    root = tmp_path_factory.mktemp("warm") / "jobs"
    yield root
    end_warm_servers(root)


@pytest.fixture
def warm(jobs_root: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> TidemarkHook:
    """The hook with the settings that most tests share, and so one server."""
    return _hook(jobs_root, monkeypatch)


@pytest.fixture
def server(warm: TidemarkHook) -> ServerRecord:
    """The server of `warm`, started if the test before has ended it."""
    return SparkJob(warm.settings).warm_spark().start(say=print)


@pytest.fixture
def gate(jobs_root: Path) -> Iterator[Path]:
    """A file beside the directories of jobs, whose existence ends the slow function of later attempts."""
    yield jobs_root / "gate"
    (jobs_root / "gate").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    """Three rows, a changed one, a deleted one, a new one, and targets."""
    lake.create("m.orders", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "m.orders")
    for name, columns in TARGETS.items():
        lake.create(name, columns)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "m.mirror")
    lake.sql("INSERT INTO {t} VALUES (4, 'four')", "m.orders")
    lake.sql("UPDATE {t} SET name = 'zwei' WHERE id = 2", "m.orders")
    lake.sql("DELETE FROM {t} WHERE id = 3", "m.orders")
    return "m.orders"


def test_a_local_spark_is_warm_unless_somebody_says_otherwise(
    run_dag: RunDag, warm: TidemarkHook, source: str, lake: Lake, server: ConnectServer
) -> None:
    _stream(warm, "m_cm")
    with DAG("in_the_warm_spark", schedule=None) as dag:
        ConsumeStreamOperator(task_id="merge", stream="m_cm", target="m.mirror", write_as="merge", keys=["id"])
    assert run_dag(dag).state == "success"
    assert lake.rows("m.mirror") == MERGED
    assert _kept() == []


def test_jobs_at_once_wait_for_slots_of_one_server(warm: TidemarkHook, server: ServerRecord) -> None:
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(_probe, SparkJob(warm.settings), warm) for _ in range(6)]
        most = 0
        while not all(job.done() for job in jobs):
            most = max(most, len(_sessions()))
            time.sleep(0.05)
    assert [job.result().error for job in jobs] == [None] * 6
    assert most <= server.order.slots == 2
    assert [record for record, _ in _living(warm)] == [server]


def test_a_small_query_ends_before_the_many_tasks_of_a_large_one(server: ServerRecord) -> None:
    large, small = (f"00000000-0000-4000-8000-00000000020{number}" for number in range(2))
    many_tasks = "spark.range(0, 4 * 10**9, 1, 4000).where('id % 7 = 3').count()"
    few_tasks = "assert spark.range(0, 100, 1, 4).count() == 100; spark.stop()"
    with ended_by_the_server(server, large):
        client = subprocess.Popen([sys.executable, "-c", SESSION.format(url=server.url(large), query=many_tasks)])
        try:
            wait_until(lambda: bool(_ask("jobs?status=running")))
            asked = SESSION.format(url=server.url(small), query=few_tasks)
            subprocess.run([sys.executable, "-c", asked], timeout=180, check=True)
            assert len(_ask("jobs?status=running")) == 1
        finally:
            client.kill()
            client.wait()
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)


def test_a_session_that_asks_nothing_is_not_closed_by_the_clock(server: ServerRecord) -> None:
    session = "00000000-0000-4000-8000-000000000300"
    query = "assert int(spark.conf.get('spark.connect.session.manager.defaultSessionTimeout')) == -1; spark.stop()"
    client = SESSION.format(url=server.url(session), query=query)
    subprocess.run([sys.executable, "-c", client], timeout=60, check=True)


def test_nobody_without_the_token_gets_an_answer(warm: TidemarkHook, server: ServerRecord) -> None:
    ours = psutil.Process(server.process_id)
    family = [ours, *ours.children(recursive=True)]
    listening = [one for process in family for one in process.net_connections("inet") if one.status == "LISTEN"]
    assert {str(one.laddr.ip).removeprefix("::ffff:") for one in listening} <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", server.port), family=socket.AF_INET6)
    for token in ("", ";token=wrong"):
        said = refusal_of(f"{server.address}/;user_id=tidemark{token}")
        assert "UNAUTHENTICATED" in said.upper() or "Invalid authentication token" in said
    for process in family:
        assert server.token not in " ".join(command_of(process))
    texts = [file for file in server.place.rglob("*") if file.is_file() and file.name != "server.json"]
    assert all(server.token not in file.read_text(errors="replace") for file in texts)
    assert stat.S_IMODE(homes(warm.settings).parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two users")
def test_another_user_finds_no_way_to_the_server(warm: TidemarkHook, server: ServerRecord) -> None:
    for look in (["cat", str(server.place / "server.json")], ["cat", f"/proc/{server.process_id}/environ"]):
        done = subprocess.run(look, user="nobody", capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "Permission denied" in done.stderr


def test_a_driver_that_is_killed_leaves_nothing_in_the_server(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord
) -> None:
    _stream(warm, "m_killed")
    before = lake.version("m.slow")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, "m_killed", _slow(), job=job)
        _wait_for_work(job, running)
        driver: Any = job._submission
        os.kill(driver.process_id, signal.SIGKILL)
        with pytest.raises(JobDied):
            running.result(timeout=60)
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)
    assert lake.version("m.slow") == before
    assert is_alive(server)


def test_a_driver_whose_task_was_killed_leaves_its_slot_and_writes_nothing(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord
) -> None:
    """The driver has a process group of its own, so the kill of the task does not reach it."""
    _stream(warm, "m_left")
    before = lake.version("m.slow")
    task = subprocess.Popen([sys.executable, "-c", LEFT_TASK])
    try:
        wait_until(lambda: bool(_ask("jobs?status=running")) or task.poll() is not None, seconds=300)
        assert busy_slots(server.place, server.order.slots) > 0
    finally:
        task.kill()
        task.wait()
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)
    wait_until(lambda: busy_slots(server.place, server.order.slots) == 0, seconds=60)
    assert lake.version("m.slow") == before
    assert is_alive(server)


def test_the_server_ends_the_session_of_a_task_that_was_killed_with_its_driver(
    warm: TidemarkHook, server: ServerRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task's process is played: it claims a slot, its session runs a query, and both are gone at once."""
    session = "00000000-0000-4000-8000-000000000001"
    query = "spark.range(0, 10**14, 1, 2).where('id % 7 = 3').count()"
    with ended_by_the_server(server, session):
        client = subprocess.Popen([sys.executable, "-c", SESSION.format(url=server.url(session), query=query)])
        try:
            wait_until(lambda: bool(_ask("jobs?status=running")))
        finally:
            client.kill()
            client.wait()
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)
    assert _probe(SparkJob(warm.settings), warm).error is None
    assert f"without leaving its session {session}" in (server.place / "server.log").read_text()


def test_a_stage_that_spark_starts_after_its_query_was_cancelled_is_cancelled_too(
    warm: TidemarkHook, server: ServerRecord
) -> None:
    """Spark starts a query's stages in other threads, so it may start one just after it has cancelled the query."""
    for number in range(8):
        url = server.url(f"00000000-0000-4000-8000-0000000001{number:02}")
        client = CANCELLED.format(session=SESSION.format(url=url, query=""), seconds=number * 0.04)
        subprocess.run([sys.executable, "-c", client], timeout=120, check=True)
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)
    assert is_alive(server)
    assert _probe(SparkJob(warm.settings), warm).error is None


def test_a_job_whose_server_is_killed_is_repeated_in_another_and_each_change_comes_once(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord, gate: Path
) -> None:
    _stream(warm, "m_lost")
    before = lake.version("m.appended")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, "m_lost", _slow_until_the_gate(), APPEND, job=job)
        _wait_for_work(job, running)
        gate.touch()
        os.killpg(server.process_id, signal.SIGKILL)
        running.result(timeout=240)
    assert lake.rows("m.appended") == [(2, "two"), (2, "zwei"), (3, "three"), (4, "four")]
    assert lake.version("m.appended") == before + 1
    assert get_stream(warm.open_store(), "m_lost").offset.version == lake.version(source)
    (successor,) = (record for record, _ in _living(warm))
    assert successor.directory != server.directory


def test_a_server_that_hangs_is_ended_and_a_job_whose_second_server_is_killed_fails(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_driver, "SILENCE", timedelta(seconds=20))
    _stream(warm, "m_hangs")
    before = lake.version("m.slow")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, "m_hangs", _slow_until_the_gate(), job=job)
        _wait_for_work(job, running)
        os.killpg(server.process_id, signal.SIGSTOP)
        wait_until(lambda: not is_alive(server), seconds=60)
        wait_until(lambda: any(in_use for _, in_use in _living(warm)), seconds=120)
        _wait_for_work(job, running)
        (successor,) = (record for record, _ in _living(warm))
        os.killpg(successor.process_id, signal.SIGKILL)
        with pytest.raises(WarmSparkEnded, match="ended while it ran the job for test/run/m_hangs"):
            running.result(timeout=60)
    assert get_stream(warm.open_store(), "m_hangs").offset.version == 1
    assert lake.version("m.slow") == before


def test_a_cancelled_job_ends_and_its_server_stays(warm: TidemarkHook, source: str, server: ServerRecord) -> None:
    _stream(warm, "m_cancelled")
    job = SparkJob(warm.settings, python_path=(FUNCTIONS,))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(consume_once, warm, "m_cancelled", _slow(), job=job)
        _wait_for_work(job, running)
        job.cancel()
        with pytest.raises(JobCancelled):
            running.result(timeout=60)
    wait_until(lambda: not _ask("jobs?status=running"), seconds=60)
    assert is_alive(server)


def test_an_application_that_waits_for_a_slot_can_be_cancelled(warm: TidemarkHook) -> None:
    application = SparkApplication(warm.settings)
    application.cancel()
    with pytest.raises(JobCancelled):
        application.run_application(Path("never_started.py"), (), name="mine", needs_jvm=False)


def test_a_function_that_needs_the_drivers_jvm_is_submitted(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord, caplog: pytest.LogCaptureFixture
) -> None:
    _stream(warm, "m_jvm")
    before = lake.rows("m.slow")
    with caplog.at_level("INFO"):
        consume_once(warm, "m_jvm", WriteRequest((), ("m.slow",), write_as="connect_functions:count_cores"))
    assert lake.rows("m.slow") == sorted([*before, (2,)])
    assert "The job needs the JVM of its driver, so it is submitted" in caplog.text


def test_udfs_of_the_functions_module_run_in_the_server(
    warm: TidemarkHook, source: str, lake: Lake, server: ServerRecord
) -> None:
    _stream(warm, "m_loud")
    consume_once(warm, "m_loud", WriteRequest((), ("m.loud",), write_as="connect_functions:shout_names"))
    assert lake.rows("m.loud") == [(2, "two!"), (2, "zwei!"), (3, "three!"), (4, "four!")]


def test_a_start_that_fails_says_why_and_leaves_no_process(
    jobs_root: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    hook = _hook(jobs_root, monkeypatch, spark_conf={**SMALL, "spark.driver.memory": "1k"})
    with pytest.raises(WarmSparkNotStarted, match="it ended with exit code") as failed:
        _probe(SparkJob(hook.settings), hook)
    assert "heap" in str(failed.value).lower() or "memory" in str(failed.value).lower()
    assert "set spark_mode of the Tidemark connection to submit" in str(failed.value)
    assert Path(failed.value.facts["log"]).exists()


@nightly("three starts of a server", "test_jobs_at_once_wait_for_slots_of_one_server")
def test_a_server_makes_room_for_one_with_more_packages_and_ends_when_it_is_idle(
    jobs_root: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    hook = _hook(jobs_root, monkeypatch, spark_slots=1)
    plain = SparkJob(hook.settings).warm_spark().start(say=print)
    more = SparkJob(hook.settings, packages=("org.postgresql:postgresql:42.7.14",))
    assert _probe(more, hook).error is None
    wait_until(lambda: not is_alive(plain), seconds=30)
    wide = SparkJob(hook.settings).warm_spark().start(say=print)
    assert len(wide.order.packages) == 2
    assert more.warm_spark().start(say=print) == wide
    short = replace(SparkJob(hook.settings).warm_spark(), home=ServerHome(jobs_root / "spark" / "short"))
    idle = replace(short, order=replace(short.order, idle=timedelta(seconds=2))).start(say=print)
    wait_until(lambda: not is_alive(idle), seconds=30)
    full = replace(short, order=replace(short.order, heap_share=0.001))
    taken = full.take(stop_if_due=lambda: None, say=print)
    assert ServerHome(jobs_root / "spark" / "short").running() == taken.server
    taken.slot.claim("x")
    taken.slot.clear()
    taken.slot.release()
    wait_until(lambda: not is_alive(taken.server), seconds=30)


@nightly("twenty tasks", "test_jobs_at_once_wait_for_slots_of_one_server")
def test_twenty_tasks_at_once_start_one_server(
    jobs_root: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path
) -> None:
    hook = _hook(jobs_root, monkeypatch, spark_slots=3)
    with ThreadPoolExecutor(20) as pool:
        jobs = [pool.submit(_probe, SparkJob(hook.settings), hook) for _ in range(20)]
        assert [job.result().error for job in jobs] == [None] * 20
    home = SparkJob(hook.settings).warm_spark().home
    assert len(list(home.servers())) == 1


def _hook(jobs_root: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> TidemarkHook:
    monkeypatch.setenv("TIDEMARK_SPARK_MASTER", "local[2]")  # one core cannot be shared fairly
    return warm_hook(jobs_root, monkeypatch, **{"spark_conf": CONF, "spark_slots": 2, **more})


def _living(hook: TidemarkHook) -> list[tuple[ServerRecord, bool]]:
    home = SparkJob(hook.settings).warm_spark().home
    return list(home.living())


def _probe(job: SparkJob, hook: TidemarkHook) -> JobResult:
    deadline = datetime.now(UTC) + timedelta(minutes=10)
    store = hook.open_store()
    return job.run(
        hook.job_paths().spec(PROBE, store.new_id(), ProbeRequest(), store_id="", deadline=deadline, key=None)
    )


def _ask(question: str) -> list[dict[str, Any]]:
    return ConnectServer(0, UI_PORT, 0, "")._ask(question)


def _kept() -> list[str]:
    return ConnectServer(0, UI_PORT, 0, "").kept()


def _sessions() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [child for child in children if "jobs/__main__.py" in " ".join(command_of(child))]


def _stream(hook: TidemarkHook, name: str) -> None:
    source = hook.table("m.orders")
    create_stream(hook.open_store(), name=name, source=source, mode=StreamMode.STANDARD, at_version=1, who="test")


def _slow() -> WriteRequest:
    return WriteRequest(streams=(), targets=("m.slow",), write_as="connect_functions:count_for_ever")


def _slow_until_the_gate() -> WriteRequest:
    return WriteRequest(streams=(), targets=("m.slow",), write_as="connect_functions:count_until_the_gate")


def _wait_for_work(job: SparkJob, running: Future[None]) -> None:
    """Waits until the server runs a query of the job. If it never does, the job is ended."""
    try:
        wait_until(lambda: bool(_ask("jobs?status=running")) or running.done())
    except BaseException:
        job.cancel()
        raise
