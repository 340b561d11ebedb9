"""No secret of a connection is in anything that a task leaves or says: every secret here is a canary, looked for
everywhere.

Each canary has letters that URLs and JSON write otherwise; what is looked for is the part that they leave as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk import DAG
from fastapi import FastAPI

import tidemark
from tests.airflow.evidence import FOR_EVERY_STATEMENT
from tests.airflow.monitor_app import Caller
from tests.airflow.runs import Outcome
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.postgresql import PostgresServer
from tidemark.errors import InvalidArgument, StoreError, TidemarkError
from tidemark.hooks._connection_test import _probe
from tidemark.hooks.connect_driver import ConnectDriver, server_url
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]
Connect = Callable[..., TidemarkHook]

CANARY = "c4n" + "4ry"  # Airflow keeps the source of a DAG, and this is one
PASSWORD = f"{CANARY}@:1/?"
STORAGE = {
    "key": f"{CANARY}-key",
    "secret": f'{CANARY}/+"2',
    "token": {"private_key": f"{CANARY}\n3", "kind": "anon"},
    "endpoint_url": f"http://ana:{CANARY}%404@127.0.0.1:9",
    "auto_mkdir": True,
}
SPARK = {"spark.hadoop.fs.s3a.secret.key": f" {CANARY}\\5\n=", "spark.sql.shuffle.partitions": "2"}
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/control.db"
    return canary_database(request.getfixturevalue("postgresql"))


def canary_database(server: PostgresServer) -> str:
    """The URL of a new database, without its password, which is a canary, too."""
    database = server.new_database()
    if not server.sql("SELECT 1 FROM pg_roles WHERE rolname = 'canary'"):
        server.sql(f"CREATE ROLE canary LOGIN PASSWORD '{PASSWORD}'")
    server.sql(f"ALTER DATABASE {database} OWNER TO canary")
    return f"postgresql+psycopg://canary@127.0.0.1:{server.port}/{database}"


@pytest.fixture
def connect(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A connection in which all that can be secret is."""

    def define(store: str, *, lake_root: str | None = None) -> TidemarkHook:
        extra = {
            "control_store": store,
            "lake_root": lake_root or str(tmp_path / "lake"),
            "storage_options": json.dumps(STORAGE),
            "spark_conf": json.dumps(SPARK),
        }
        given = {"conn_type": "tidemark", "password": PASSWORD, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(given))
        monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
        return TidemarkHook()

    return define


def mirror(dag_id: str) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="changes", on="s.source", at=0)
        deliver = ConsumeStreamOperator(task_id="deliver", stream="changes", target="s.target", write_as="append")

        create >> deliver
    return dag


def driver(tmp_path: Path, ends: str) -> str:
    """A script in place of spark-submit that keeps what it was given and says all that it knows."""
    return "\n".join(
        (
            f'cp -p "$spec" {tmp_path}/spec',
            'properties=$(printf "%s\\n" "$@" | grep -A1 -x -e --properties-file | tail -1)',
            f'cat "$properties" "$properties" > {tmp_path}/twice; stat -Lc %a "$properties" > {tmp_path}/mode',
            f'cat "$properties" > {tmp_path}/properties; ls "$(dirname "$spec")" > {tmp_path}/beside',
            f'echo "$TIDEMARK_STORAGE_OPTIONS" > {tmp_path}/environment',
            f"cat /proc/[0-9]*/cmdline > {tmp_path}/processes 2>/dev/null",
            'echo "tidemark: $TIDEMARK_STORAGE_OPTIONS"; echo "noise $TIDEMARK_STORAGE_OPTIONS"',
            f"cat {tmp_path}/properties",
            ends,
        )
    )


def left_behind(home: Path, tmp_path: Path, url: str) -> dict[str, bytes]:
    """Airflow's database (XCom, rendered fields, events), what lies in the lake and of jobs, the control store, process
    lists.
    """
    places = [home / "airflow.db", tmp_path / "spec", tmp_path / "processes", tmp_path / "started"]
    roots = (tmp_path / "lake" / "_tidemark", tmp_path / "jobs")
    places += [file for root in roots for file in root.rglob("*") if file.is_file()]
    found = {str(place): place.read_bytes() for place in places}
    found |= {file.name: file.read_bytes() for file in home.glob("airflow.db-*")}
    engine = sa.create_engine(sa.make_url(url).set(password=PASSWORD) if "postgresql" in url else url)
    with engine.connect() as connection:
        for table in sa.inspect(engine).get_table_names():
            rows = connection.execute(sa.text(f'SELECT * FROM "{table}"')).fetchall()
            found[f"table {table}"] = repr(rows).encode()
    engine.dispose()
    return found


def leaks(found: dict[str, bytes]) -> list[str]:
    return [name for name, content in found.items() if CANARY.encode() in content]


@pytest.mark.parametrize(
    ("ends", "state"), [(FOR_EVERY_STATEMENT, "success"), ("exit 4", "failed")], ids=["well", "badly"]
)
def test_a_task_leaves_no_secret_in_logs_files_arguments_xcom_fields_or_the_store(
    airflow_home: Path,
    run_dag: RunDag,
    spark_submit: StandIn,
    connect: Connect,
    store_url: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    ends: str,
    state: str,
) -> None:
    connect(store_url).open_store().migrate()
    source, _ = SyntheticTable(tmp_path / "lake/s/source"), SyntheticTable(tmp_path / "lake/s/target")
    source.append()
    spark_submit(driver(tmp_path, ends))
    ran = run_dag(mirror(f"canary_{state}_{tmp_path.name}"), FIRST)
    assert ran.task("deliver") == state
    said = "".join(capfd.readouterr())
    assert "***" in said
    assert CANARY not in said
    found = left_behind(airflow_home, tmp_path, store_url)
    assert "spark-submit" in found[str(tmp_path / "processes")].decode()
    assert sum(name.startswith("table tidemark_") for name in found) > 5
    assert any(name.endswith("spark.log") for name in found) == (state == "failed")
    assert not any(name.endswith("secret.properties") for name in found)
    assert leaks(found) == []


DAG_FILE = """
import os
from airflow.sdk import DAG, task
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator

with DAG("supervised_canary"):
    ConsumeStreamOperator(task_id="deliver", stream="changes", target="s.target", write_as="append")

    @task
    def careless():
        settings = TidemarkHook().settings
        print("printed:", settings.control_store, settings.storage_options, settings.spark_conf)
        raise ValueError(f"raised: {settings.control_store} {settings.storage_options}")

    careless()
"""


@pytest.mark.parametrize(("task", "says"), [("deliver", "noise"), ("careless", "printed")])
def test_a_supervised_task_tells_no_secret_to_its_log_or_to_airflow(
    spark_submit: StandIn, connect: Connect, postgresql: PostgresServer, tmp_path: Path, task: str, says: str
) -> None:
    url = canary_database(postgresql)
    hook = connect(url)
    hook.open_store().migrate()
    SyntheticTable(tmp_path / "lake/s/source").append()
    SyntheticTable(tmp_path / "lake/s/target")
    made = mirror("supervised_made").get_task("create")
    made.execute({"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="create", map_index=-1)})  # type: ignore[arg-type]
    spark_submit(driver(tmp_path, "exit 4"))
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/canary.py").write_text(DAG_FILE)
    log, asked = tmp_path / "task.log", tmp_path / "asked"
    connection = json.loads(os.environ["AIRFLOW_CONN_TIDEMARK_DEFAULT"])
    given = {
        "dags": str(tmp_path / "dags"), "file": "canary.py", "dag": "supervised_canary", "task": task,
        "connections": {"tidemark_default": {**connection, "extra": json.dumps(connection["extra"])}},
        "log": str(log), "asked": str(asked),
    }  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_CONN_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.airflow.supervised"],
        input=json.dumps(given), env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    told = log.read_text()
    assert says in told, done.stderr
    assert told.count("***") > 3
    assert "connections/tidemark_default" in asked.read_text()
    assert leaks({"log": log.read_bytes(), "requests": asked.read_bytes(), "output": done.stdout.encode()}) == []


def test_what_is_secret_reaches_the_driver_all_the_same(
    spark_submit: StandIn, connect: Connect, run_dag: RunDag, tmp_path: Path
) -> None:
    hook = connect(f"sqlite:///{tmp_path}/control.db")
    SyntheticTable(tmp_path / "lake/s/source").append()
    SyntheticTable(tmp_path / "lake/s/target")
    started = spark_submit(driver(tmp_path, FOR_EVERY_STATEMENT))
    assert run_dag(mirror("canary_reaches"), FIRST).task("deliver") == "success"
    assert json.loads((tmp_path / "environment").read_text()) == STORAGE == hook.settings.storage_options
    properties = (tmp_path / "properties").read_text()
    assert properties == f"spark.hadoop.fs.s3a.secret.key=\\ {CANARY}\\\\5\\n=\n"
    assert (tmp_path / "twice").read_text() == properties * 2  # the launcher reads it, and then spark-submit
    assert (tmp_path / "mode").read_text() == "600\n"
    assert "--load-spark-defaults" in started.read_text()
    assert "spark.sql.shuffle.partitions=2" in started.read_text()


def test_secret_settings_are_in_no_file_that_a_killed_worker_could_leave(
    spark_submit: StandIn, connect: Connect, tmp_path: Path
) -> None:
    from tests.airflow.test_spark_job import RESULT, spec_in

    hook = connect(f"sqlite:///{tmp_path}/control.db")
    spark_submit(driver(tmp_path, RESULT))
    SparkJob(hook.settings).run(spec_in(tmp_path))
    beside = (tmp_path / "beside").read_text().split()
    assert "spec.json" in beside
    assert "secret.properties" not in beside
    assert CANARY in (tmp_path / "properties").read_text()


def test_where_no_file_can_be_in_memory_it_is_private_and_gone_once_it_was_read(
    spark_submit: StandIn, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.airflow.test_spark_job import RESULT, spec_in

    monkeypatch.delattr(os, "memfd_create", raising=False)
    hook = connect(f"sqlite:///{tmp_path}/control.db")
    main = Path(tidemark.__file__).parent / "jobs" / "__main__.py"
    begun = f'echo "no spec" > {tmp_path}/begun/spec.json; cp -p "$properties" {tmp_path}/begun/'
    read = f"{sys.executable} {main} {tmp_path}/begun/spec.json; ls {tmp_path}/begun > {tmp_path}/after"
    (tmp_path / "begun").mkdir()
    spark_submit(driver(tmp_path, f"{begun}; {read}; {RESULT}"))
    SparkJob(hook.settings).run(spec_in(tmp_path))
    assert "secret.properties" in (tmp_path / "beside").read_text()
    assert (tmp_path / "mode").read_text() == "600\n"
    assert CANARY in (tmp_path / "properties").read_text()
    assert (tmp_path / "after").read_text() == "spec.json\n"  # the driver's first act, whatever its spec is


def test_without_secret_settings_spark_finds_its_properties_where_it_always_does(
    hook: TidemarkHook, spark_submit: StandIn, tmp_path: Path
) -> None:
    from tests.airflow.test_spark_job import RESULT, spec_in

    started = spark_submit(RESULT)
    SparkJob(hook.settings).run(spec_in(tmp_path))
    assert "propert" not in started.read_text()
    assert "--load-spark-defaults" not in started.read_text()


def test_what_a_users_own_code_logs_is_masked_by_airflow(connect: Connect) -> None:
    from airflow.sdk.log import mask_logs

    settings = connect("postgresql://ana@h/db").settings
    key = f"{CANARY}\n3"
    told = (
        f"{settings.control_store} {dict(settings.storage_options)} {json.dumps(STORAGE)} {settings.spark_conf} {key}"
    )
    masked = mask_logs(None, "info", {"event": told, "line": key.splitlines()[0]})  # type: ignore[arg-type]
    assert CANARY in told
    assert CANARY not in str(masked)


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://ana@127.0.0.1:1/nowhere",
        f"postgresql://ana:{CANARY}%40@127.0.0.1:1/nowhere?sslpassword={CANARY}",
        f"postgresql://ana:{CANARY}@x@127.0.0.1:port/nowhere",
        f"postgresql://ana:{CANARY}/x@127.0.0.1/nowhere",
        f"mysql://ana:{CANARY}@127.0.0.1/nowhere",
        f"postgres:{CANARY}",
        f"postgresql://ana:{CANARY}@[::1/nowhere",
    ],
)
def test_errors_of_the_store_say_no_secret_even_where_nothing_masks(connect: Connect, store: str) -> None:
    from datetime import timedelta

    hook = connect(store)
    with pytest.raises(StoreError) as refused:
        hook.open_store(patience=timedelta(0)).read(lambda connection: None)
    said = "".join(traceback.format_exception(refused.value)) + repr(refused.value) + str(refused.value.to_record())
    assert CANARY not in said.replace(f'connect("{store}', "")
    assert CANARY not in hook.test_connection()[1]


def test_a_lake_that_does_not_answer_is_told_without_its_credentials(connect: Connect, tmp_path: Path) -> None:
    hook = connect(f"sqlite:///{tmp_path}/control.db", lake_root="s3://nowhere/lake")
    with pytest.raises(TidemarkError) as refused:
        hook.table("s.orders")
    assert CANARY not in "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    ok, said = hook.test_connection()
    assert (ok, CANARY in said) == (False, False)


@pytest.mark.parametrize("place", [f"sftp://ana:{CANARY}@h/lake", f"s3://{CANARY}:{CANARY}@bucket/lake"])
def test_a_place_with_a_password_in_it_is_refused_since_places_are_written_down(
    connect: Connect, tmp_path: Path, place: str
) -> None:
    hook = connect(f"sqlite:///{tmp_path}/control.db")
    refused = []
    for ask in (
        hook.table_uri,
        hook.table,
        lambda there: connect(f"sqlite:///{tmp_path}/c.db", lake_root=there).settings,
    ):
        with pytest.raises(InvalidArgument, match="storage options") as error:
            ask(place)
        refused.append(str(error.value))
    assert CANARY not in "".join(refused)


def test_a_container_of_azure_is_no_password(connect: Connect, tmp_path: Path) -> None:
    lake = "abfss://lake@account.dfs.core.windows.net/tables"
    assert connect(f"sqlite:///{tmp_path}/c.db", lake_root=lake).settings.lake_root == lake


def test_nothing_of_ours_prints_a_secret(connect: Connect, tmp_path: Path) -> None:
    from airflow.sdk import Connection

    from tidemark.delivery.driver.exactly_once import Delivering
    from tidemark.jobs.context import JobContext

    hook = connect("postgresql://ana@127.0.0.1:1/nowhere")
    settings = hook.settings
    url = server_url(Connection(conn_id="c", conn_type="spark_connect", host="h", password=PASSWORD))
    nothing: dict[str, Any] = dict.fromkeys(("session", "spec", "progress", "started_at", "stop_if_due"))
    things = [
        hook, settings, SparkJob(settings), hook.open_store(), hook.job_paths(),
        ConnectDriver(url, spark_log=tmp_path / "log", arguments=(), environment={}),
        JobContext(options=STORAGE, **nothing),  # type: ignore[arg-type]
        Delivering("", None, (), options=STORAGE),  # type: ignore[arg-type]
    ]  # fmt: skip
    assert CANARY in str([settings.storage_options, settings.control_store, url])
    assert [type(thing) for thing in things if CANARY in f"{thing!r}{thing}"] == []


def test_the_test_button_answers_without_a_secret(connect: Connect, store_url: str) -> None:
    hook = connect(store_url)
    hook.open_store().migrate()
    ok, said = hook.test_connection()
    assert (ok, CANARY in said) == (True, False), said


def test_the_page_answers_without_a_secret(
    app: FastAPI,
    connect: Connect,
    store_url: str,
    tmp_path: Path,
) -> None:
    from tidemark.model.streams import StreamMode
    from tidemark.streams.worker.streams import create_stream

    hook = connect(store_url)
    store = hook.open_store()
    store.migrate()
    SyntheticTable(tmp_path / "lake/s/source").append()
    create_stream(
        store, name="changes", source=hook.table("s.source"), mode=StreamMode.STANDARD, at_version=0, who="ana"
    )
    ask = Caller(app)
    answers = [
        ask(path, **asked)
        for path, asked in (
            ("/", {}), ("/api/v1/openapi.json", {}), ("/api/v1/streams", {}), ("/api/v1/stream", {"name": "changes"}),
            ("/api/v1/stream", {"name": "none"}),
        )
    ]  # fmt: skip
    assert "changes" in answers[2].text
    assert [a.url.path for a in answers if CANARY in a.text + str(a.headers)] == []


@pytest.mark.spark
def test_sparks_own_event_log_has_no_secret(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    more = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{events}",
        "spark.foo.sas.bar": CANARY,
    }
    monkeypatch.setitem(globals(), "SPARK", {**SPARK, **more})
    hook = connect(f"sqlite:///{tmp_path}/control.db")
    result = SparkJob(hook.settings).run(_probe(hook))
    assert result.error is None
    logged = "".join(file.read_text(errors="replace") for file in events.rglob("*") if file.is_file())
    assert "spark.hadoop.fs.s3a.secret.key" in logged
    assert "spark.foo.sas.bar" in logged
    assert CANARY not in logged
