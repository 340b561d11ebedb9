"""`airflow tidemark ingest`: a submitted service, writers with tokens of their own, and ends of either side."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pyspark.sql import SparkSession

from tests.airflow.command_line import Said, run_airflow
from tests.ports import lasting_port
from tests.processes import kill_all
from tests.table_templates import put_table
from tests.until import wait_until
from tidemark.channels.planning.listing import records_of
from tidemark.client import connect
from tidemark.lake.delta_log import DeltaLog

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]

WRITER = Path(__file__).parents[2] / "dags" / "ingest" / "writer.py"
AIRFLOW = Path(sys.executable).with_name("airflow")
LINES = 2_000


def ingest(*arguments: str) -> Said:
    return run_airflow("tidemark", "ingest", *arguments)


@pytest.fixture
def home(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path / 'tidemark.db'}")
    return tmp_path


def test_tokens_are_printed_once_and_kept_as_hashes(home: Path) -> None:
    (made,) = json.loads(ingest("tokens", "add", "app", "--table", "db.*", "--output", "json").stdout)
    assert len(made["token"]) >= 40
    file = home / "tidemark-ingest-tokens.json"
    assert made["token"] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    (listed,) = json.loads(ingest("tokens", "list", "--output", "json").stdout)
    assert listed == {"name": "app", "tables": "db.*", "pipes": "", "created_at": made["created_at"]}
    ingest("tokens", "add", "app", "--pipe", "db.p", "--pipe", "other.*", "--output", "json")
    (renewed,) = json.loads(ingest("tokens", "list", "--output", "json").stdout)
    assert (renewed["tables"], renewed["pipes"]) == ("", "db.p, other.*")
    for _ in range(2):
        assert json.loads(ingest("tokens", "remove", "app", "--output", "json").stdout) == []


def test_a_token_is_a_line_of_its_own_below_the_table(home: Path) -> None:
    *table, token = ingest("tokens", "add", "app", "--table", "db.*").stdout.splitlines()
    assert re.fullmatch(r"[\w-]{40,}", token)
    assert token not in "".join(table)
    assert "db.*" in "".join(table)
    assert ingest("tokens", "add", "app", "--table", "db.*", "--output", "plain").stdout.count("token") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("tokens", "add", "app"), "name the tables"),
        (("tokens", "add", " ", "--table", "db.*"), "printable name"),
        (("serve", "--host", "0.0.0.0"), "others could read the tokens"),
        (("serve", "--port", "70000"), "from 0 to 65535"),
        (("serve", "--certificate", "cert.pem"), "needs its key"),
        (("serve", "--keep-hours", "0"), "must be more than 0"),
        (("serve", "--max-client-lag", "0"), "from 1 second to 10 minutes"),
    ],
)
def test_bad_arguments_end_the_command_before_anything_starts(
    home: Path, spark_submit: Callable[[str], Path], arguments: Any, problem: str
) -> None:
    started = spark_submit("exit 1")
    said = ingest(*arguments)
    assert said.returncode == 1
    assert problem in said.stderr
    assert not started.exists()


def test_a_broken_file_of_tokens_is_named(home: Path) -> None:
    (home / "tidemark-ingest-tokens.json").write_text("half of a fi")
    assert "TokensFileUnreadable" in ingest("tokens", "list").stderr


@dataclass
class Service:
    """A service of its own process."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """The command, spark-submit, the JVM and the Python in it, all at once."""
        leader = psutil.Process(self.process.pid)
        kill_all([leader, *leader.children(recursive=True)])
        self.process.wait()


@contextmanager
def serving(home: Path, port: int, *more: str) -> Iterator[Service]:
    log = home / f"service-{time.monotonic_ns()}.log"
    command = [str(AIRFLOW), "tidemark", "ingest", "serve", "--port", str(port), *more]
    with log.open("wb") as said:
        service = Service(subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT), port, log)
    try:
        wait_until(service.is_ready, seconds=120)
        yield service
    finally:
        if service.process.poll() is None:
            service.kill()


def test_rows_are_in_the_table_once_though_writers_and_service_were_killed(home: Path, spark: SparkSession) -> None:
    table = home / "lake" / "db" / "events"
    put_table(
        spark, table, "CREATE TABLE {t} (n BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    (made,) = json.loads(ingest("tokens", "add", "app", "--table", "db.events", "--output", "json").stdout)
    lines = home / "lines.jsonl"
    lines.write_text("".join(f'{{"n": {n}}}\n' for n in range(1, LINES + 1)))
    environment = os.environ | {"INGEST_TOKEN": made["token"], "INGEST_PAUSE": "0.05"}

    def writer(service: Service, channel: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(WRITER), service.url, "db.events", channel, str(lines)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rows() -> list[int]:
        return [row.n for row in spark.read.format("delta").load(str(table)).collect()]

    def token(channel: str) -> int:
        record = records_of(DeltaLog.open(str(table)).state()).get(channel)
        return int(record.offset_token or 0) if record is not None else 0

    port = lasting_port()
    with serving(home, port) as service:
        killed = writer(service, "killed")
        cut_off = writer(service, "cut off")
        wait_until(lambda: all(0 < token(channel) < LINES for channel in ("KILLED", "CUT OFF")))
        killed.kill()
        service.kill()
        assert killed.wait() == -signal.SIGKILL
        assert cut_off.wait(60) != 0
    with serving(home, port, "--keep-hours", "0.001", "--evolve-schema") as service:
        writers = [writer(service, channel) for channel in ("killed", "cut off")]
        for one in writers:
            said, problem = one.communicate(timeout=120)
            assert one.returncode == 0, problem
            assert said.decode().strip().endswith(f"{LINES} lines are in db.events")
        assert sorted(rows()) == sorted([*range(1, LINES + 1)] * 2)
        wait_until(lambda: "OPTIMIZE" in operations(spark, table))
        append_without_a_flush(service, made["token"])
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0, service.log.read_text()
    assert max(rows()) == LINES + 1


def operations(spark: SparkSession, table: Path) -> list[str]:
    return [row.operation for row in spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()]


def append_without_a_flush(service: Service, bearer: str) -> None:
    """A row that the service has taken just before its end. Its channel may add columns."""
    headers = {"Authorization": f"Bearer {bearer}"}
    channel = f"{service.url}/v1/tables/db.events/channels/last"
    opened = httpx.put(channel, json={"evolve_schema": True}, headers=headers, timeout=60).json()
    tokens = {"continuation_token": opened["next_continuation_token"], "offset_token": "1"}
    taken = httpx.post(f"{channel}/rows", params=tokens, content=f'{{"n": {LINES + 1}, "more": 1}}', headers=headers)
    assert taken.status_code == 200


def test_a_killed_service_loses_no_file_that_it_answered_for_a_pipe_that_is_newer_than_itself(
    home: Path, spark: SparkSession
) -> None:
    put_table(spark, home / "lake" / "db" / "t", "CREATE TABLE {t} (id INT) USING delta")
    files = home / "in"
    files.mkdir()
    (made,) = json.loads(ingest("tokens", "add", "app", "--pipe", "db.*", "--output", "json").stdout)
    headers = {"Authorization": f"Bearer {made['token']}"}

    def insert(service: Service) -> int:
        place = f"{service.url}/v1/data/pipes/db.p/insertFiles"
        body = {"files": [{"path": "a.csv"}]}
        return httpx.post(place, json=body, headers=headers, timeout=120).status_code

    with closing(connect(spark, f"sqlite:///{home / 'tidemark.db'}", lake_root=str(home / "lake"))) as lake:
        with serving(home, lasting_port()) as service:
            assert insert(service) == 404
            lake.sql(f"CREATE PIPE db.p AS COPY INTO db.t FROM '{files}' FILE_FORMAT = (TYPE = CSV)")
            wait_until(lambda: insert(service) == 200, seconds=60)
            service.kill()
        (files / "a.csv").write_text("1\n")
        assert lake.run_pipe("db.p").files_loaded == 1
    assert [row.id for row in spark.read.format("delta").load(str(home / "lake" / "db" / "t")).collect()] == [1]
