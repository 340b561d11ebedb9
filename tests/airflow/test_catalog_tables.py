"""Tables that only a catalog of Spark knows, and tables that are renamed, in operators, sensors and commands."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from pyspark.sql import SparkSession

from tests.airflow.command_line import run_airflow
from tests.airflow.runs import Lake, Outcome
from tests.tiers import nightly
from tidemark.errors import InvalidArgument, JobDied, TableNotFound, TargetNotFound
from tidemark.hooks.spark_application import SparkApplication
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing
from tidemark.operators._plans import WriteRequest, planned_writes
from tidemark.operators.change_streams import CreateChangeStreamOperator
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.vacuum import VacuumTableOperator
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.consume import deliver
from tidemark.streams.worker.following import FOLLOWED_BY
from tidemark.streams.worker.outcomes import Begun
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import get_stream, stream_history

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


@dataclass(frozen=True)
class Shop:
    """A schema of Spark's own catalog with a managed table, a target below the lake root, and the jobs that ran."""

    spark: SparkSession
    lake: Lake
    schema: str
    jobs: Path

    @property
    def table(self) -> str:
        return f"spark_catalog.{self.schema}.orders"

    @property
    def mirror(self) -> str:
        return f"{self.schema}.mirror"

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.spark.sql(text.replace("{s}", self.schema))

    def started(self) -> int:
        return len(self.jobs.read_text().splitlines()) if self.jobs.exists() else 0

    def mirrored(self) -> list[tuple[int]]:
        return self.lake.rows(self.mirror)


@pytest.fixture
def shop(spark: SparkSession, lake: Lake, warm_spark: Path, airflow_home: Path) -> Iterator[Shop]:
    made = Shop(spark, lake, f"shop_{uuid.uuid4().hex[:8]}", warm_spark)
    made.sql("CREATE DATABASE {s}", f"CREATE TABLE {{s}}.orders (id INT) USING delta {TRACKED}")
    lake.create(made.mirror, "id INT")
    yield made
    made.sql("DROP DATABASE {s} CASCADE")


def mirroring(shop: Shop, name: str, on: str | None = None) -> DAG:
    with DAG(name, schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream=name, on=on or shop.table)
        create >> ConsumeStreamOperator(
            task_id="consume", stream=name, target=shop.mirror, write_as="append", outlets=[]
        )  # fmt: skip
    return dag


def test_R90_operators_follow_a_managed_table_that_is_renamed_between_windows(
    run_dag: RunDag, shop: Shop, hook: TidemarkHook
) -> None:
    dag = mirroring(shop, shop.schema)

    def day(number: int) -> None:
        assert run_dag(dag, at=datetime(2026, 11, number, tzinfo=UTC)).state == "success"

    day(1)
    assert shop.started() == 1  # a job asked the catalog, and an empty window starts none
    before = get_stream(hook.open_store(), shop.schema)
    assert (before.source.name, before.source.addressing) == (shop.table, Addressing.CATALOG)
    shop.sql("INSERT INTO {s}.orders VALUES (1)")
    day(2)
    shop.sql("ALTER TABLE {s}.orders RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (2)")
    day(3)
    assert shop.started() == 3  # and nothing but two windows were written since
    after = get_stream(hook.open_store(), shop.schema)
    assert (after.uid, after.source.name) == (before.uid, f"spark_catalog.{shop.schema}.renamed")
    assert after.source.path == before.source.path.replace("/orders", "/renamed")
    shop.sql("INSERT INTO {s}.renamed VALUES (3)")
    day(4)  # the DAG has the old name still
    assert shop.mirrored() == [(1,), (2,), (3,)]
    assert [move.who for move in stream_history(hook.open_store(), shop.schema)].count(FOLLOWED_BY) == 1


def test_a_statement_creates_a_table_of_a_catalog_and_fills_it_once(
    run_dag: RunDag, shop: Shop, hook: TidemarkHook
) -> None:
    create(shop, shop.table)
    shop.sql("INSERT INTO {s}.orders VALUES (1), (2)")
    target, at = f"spark_catalog.{shop.schema}.`2026_kept`", datetime(2026, 11, 1, tzinfo=UTC)
    sql = f"CREATE TABLE {target} AS SELECT id, METADATA$ACTION AS act FROM {shop.schema} WHERE id > 1"

    def taking(name: str, text: str) -> DAG:
        with DAG(f"{shop.schema}_{name}", schedule=None) as dag:
            StreamSQLOperator(task_id="it", sql=text, stream=shop.schema)
        return dag

    first = run_dag(taking("ctas", sql), at).returned("it")
    assert (first["to"], first["rows"]) == (1, 1)
    assert [tuple(row) for row in shop.spark.table(target).collect()] == [(2, "INSERT")]
    assert shop.spark.catalog.getTable(target).tableType == "MANAGED"
    shop.sql("INSERT INTO {s}.orders VALUES (3)")
    started = shop.started()
    assert run_dag(taking("ctas", sql), at).returned("it") == first
    assert shop.started() == started
    assert run_dag(taking("again", sql)).task("it") == "failed"
    kept = run_dag(taking("if", sql.replace("TABLE", "TABLE IF NOT EXISTS"))).returned("it")
    named = target.replace("`", "")
    assert kept == [{"status": f"Table {named} already exists, statement succeeded."}]
    assert get_stream(hook.open_store(), shop.schema).offset.version == 1
    assert [tuple(row) for row in shop.spark.table(target).collect()] == [(2, "INSERT")]


def test_R90_a_table_that_is_renamed_below_the_lake_root_is_followed_by_a_dag_that_has_its_old_name(
    run_dag: RunDag, shop: Shop, hook: TidemarkHook
) -> None:
    name = f"{shop.schema}.orders"
    shop.lake.create(name, "id INT", row_tracking=True)
    dag = mirroring(shop, f"{shop.schema}_lake", on=name)
    for number, new_name in enumerate(("orders", "renamed", "again"), start=1):
        shutil.move(shop.lake.root / name.replace(".", "/"), shop.lake.root / shop.schema / new_name)
        name = f"{shop.schema}.{new_name}"
        assert run_dag(dag, at=datetime(2026, 11, number, tzinfo=UTC)).state == "success"
        shop.lake.sql(f"INSERT INTO {{t}} VALUES ({number})", name)
    assert run_dag(dag, at=datetime(2026, 11, 9, tzinfo=UTC)).state == "success"
    assert get_stream(hook.open_store(), f"{shop.schema}_lake").source.name == name
    assert shop.mirrored() == [(1,), (2,), (3,)]


def test_R90_a_window_that_is_open_during_the_rename_is_delivered_once(shop: Shop, hook: TidemarkHook) -> None:
    create(shop, shop.table)
    shop.sql("INSERT INTO {s}.orders VALUES (1)")
    opened = begun(shop, hook, "r1")
    shop.sql("ALTER TABLE {s}.orders RENAME TO {s}.renamed", "INSERT INTO {s}.renamed VALUES (2)")
    first, again = deliver(*opened), deliver(*begun(shop, hook, "r1"))
    assert (first.result, again.delivered_before) == (again.result, True)
    assert shop.mirrored() == [(1,)]
    deliver(*begun(shop, hook, "r2"))
    assert shop.mirrored() == [(1,), (2,)]


def test_a_sensor_follows_the_table_without_a_job(shop: Shop, hook: TidemarkHook) -> None:
    create(shop, shop.table)
    shop.sql("INSERT INTO {s}.orders VALUES (1)", "ALTER TABLE {s}.orders RENAME TO {s}.renamed")
    started = shop.started()
    sensor = StreamHasDataSensor(task_id="wait", stream=shop.schema, deferrable=False)
    assert sensor.poke({})
    assert shop.started() == started
    assert get_stream(hook.open_store(), shop.schema).source.path.endswith("/renamed")


def test_a_table_that_the_catalog_has_elsewhere_is_found_by_a_job(
    shop: Shop, hook: TidemarkHook, tmp_path: Path
) -> None:
    shop.sql(f"CREATE TABLE {{s}}.outside (id INT) USING delta LOCATION '{tmp_path}/outside' {TRACKED}")
    create(shop, f"spark_catalog.{shop.schema}.outside")
    shop.sql("INSERT INTO {s}.outside VALUES (1)")
    (tmp_path / "far").mkdir()
    shutil.move(tmp_path / "outside", tmp_path / "far" / "moved")
    shop.sql("DROP TABLE {s}.outside", f"CREATE TABLE {{s}}.found USING delta LOCATION '{tmp_path}/far/moved'")
    with pytest.raises(TableNotFound):
        StreamHasDataSensor(task_id="wait", stream=shop.schema, deferrable=False).poke({})
    deliver(*begun(shop, hook, "r1"))
    found = get_stream(hook.open_store(), shop.schema).source
    assert (found.name, found.path) == (f"spark_catalog.{shop.schema}.found", f"file://{tmp_path}/far/moved")
    assert shop.mirrored() == [(1,)]


def test_a_name_below_the_lake_root_starts_no_job_and_the_catalogs_table_of_that_name_is_another(
    shop: Shop, hook: TidemarkHook
) -> None:
    shop.lake.create(f"{shop.schema}.orders", "id INT", row_tracking=True)
    create(shop, f"{shop.schema}.orders")
    assert shop.started() == 0
    source = get_stream(hook.open_store(), shop.schema).source
    assert (source.addressing, source.path) == (Addressing.LAKE, f"file://{shop.lake.root}/{shop.schema}/orders")


def test_what_no_catalog_has_is_said(shop: Shop, hook: TidemarkHook) -> None:
    nothing = f"spark_catalog.{shop.schema}.nothing"
    with pytest.raises(TableNotFound, match="in Spark's catalog"):
        create(shop, nothing)
    create(shop, shop.table)
    with pytest.raises(TargetNotFound, match="nothing does not exist"):
        run(appending(shop, nothing))
    with pytest.raises(InvalidArgument, match="Give the path of the table"):
        hook.table(nothing)


def test_a_target_of_a_catalog_is_asked_for_once_and_again_when_it_is_elsewhere(
    run_dag: RunDag, shop: Shop, tmp_path: Path
) -> None:
    create(shop, shop.table)
    shop.sql("CREATE TABLE {s}.kept (id INT) USING delta", "INSERT INTO {s}.orders VALUES (1)")
    target = f"spark_catalog.{shop.schema}.kept"
    with DAG(f"{shop.schema}_kept", schedule=None) as dag:
        appending(shop, target)

    def day(number: int) -> tuple[str, int]:
        before = shop.started()
        return run_dag(dag, at=datetime(2026, 11, number, tzinfo=UTC)).task("keep"), shop.started() - before

    def kept() -> list[int]:
        return sorted(row.id for row in shop.spark.table(target).collect())

    assert (day(1), kept()) == (("success", 2), [1])  # a job asks the catalog, and one writes
    shop.sql("INSERT INTO {s}.orders VALUES (2)")
    assert (day(2), kept()) == (("success", 1), [1, 2])
    shop.sql("ALTER TABLE {s}.kept RENAME TO {s}.old", "INSERT INTO {s}.orders VALUES (3)")
    shop.sql(f"CREATE TABLE {{s}}.kept (id INT) USING delta LOCATION '{tmp_path}/elsewhere'")
    assert (day(3), kept()) == (("success", 2), [3])
    outside = f"CREATE TABLE {{s}}.kept (id INT) USING delta LOCATION '{tmp_path}/again'"
    shop.sql("DROP TABLE {s}.kept", outside, "INSERT INTO {s}.orders VALUES (4)")  # what was there is there still
    assert (day(4)[0], kept()) == ("failed", [])
    assert (day(4), kept()) == (("success", 2), [4])
    elsewhere = shop.spark.read.format("delta").load(f"{tmp_path}/elsewhere")
    assert [row.id for row in elsewhere.collect()] == [3]


def test_a_plan_whose_worker_died_is_given_back_if_its_target_is_elsewhere(
    run_dag: RunDag, shop: Shop, hook: TidemarkHook, tmp_path: Path
) -> None:
    create(shop, shop.table)
    outside = f"CREATE TABLE {{s}}.kept (id INT) USING delta LOCATION '{tmp_path}"
    shop.sql(f"{outside}/first'", "INSERT INTO {s}.orders VALUES (1)")
    target = f"spark_catalog.{shop.schema}.kept"
    with DAG(f"{shop.schema}_kept", schedule=None) as dag:
        appending(shop, target)
    assert run_dag(dag, at=datetime(2026, 11, 1, tzinfo=UTC)).state == "success"
    shop.sql("INSERT INTO {s}.orders VALUES (2)")

    def dies(spec: JobSpec) -> JobResult:
        raise JobDied(key=spec.kind, exit_code=-9, tail="")

    runtime, opened = begun(shop, hook, "dead", target=target, path=f"file://{tmp_path}/first")
    with pytest.raises(JobDied):
        deliver(replace(runtime, run=dies), opened)
    shop.sql("DROP TABLE {s}.kept", f"{outside}/second'")
    again = datetime(2026, 11, 2, tzinfo=UTC)
    assert [run_dag(dag, at=again).state for _ in range(2)] == ["failed", "success"]
    assert [row.id for row in shop.spark.table(target).collect()] == [2]


def test_sql_a_vacuum_and_a_change_stream_take_names_of_a_catalog(run_dag: RunDag, shop: Shop) -> None:
    shop.sql("CREATE TABLE {s}.kept (id INT) USING delta", "INSERT INTO {s}.orders VALUES (1)")
    create(shop, shop.table)
    shop.sql("INSERT INTO {s}.orders VALUES (2)")
    kept = f"spark_catalog.{shop.schema}.kept"
    insert = f"INSERT INTO {kept} SELECT s.id FROM {shop.schema} s JOIN {shop.table} o USING (id)"
    with DAG(shop.schema, schedule=None) as dag:
        StreamSQLOperator(task_id="sql", sql=insert, outlets=[])
    assert run_dag(dag).returned("sql")["rows"] == 1
    assert [row.id for row in shop.spark.table(f"{shop.schema}.kept").collect()] == [2]
    vacuumed = run(VacuumTableOperator(task_id="vacuum", table=shop.table, dry_run=True))
    assert vacuumed["table"] == shop.table
    watched = run(
        CreateChangeStreamOperator(task_id="watch", change_stream=shop.schema, watch=[shop.table], keys=["id"])
    )
    assert watched["tables"]


def test_sql_and_a_re_base_take_a_name_of_the_catalog(shop: Shop, hook: TidemarkHook) -> None:
    text = f"CREATE STREAM {shop.schema} ON TABLE {shop.table}"
    run(StreamSQLOperator(task_id="create", sql=text))
    assert get_stream(hook.open_store(), shop.schema).source.name == shop.table
    shop.sql(f"CREATE OR REPLACE TABLE {{s}}.orders (id INT) USING delta {TRACKED}")
    run(RebaseStreamOperator(task_id="rebase", stream=shop.schema, on=shop.table, why="loaded anew"))
    assert get_stream(hook.open_store(), shop.schema).source.name == shop.table


def test_commands_ask_the_catalog_and_show_the_origin(shop: Shop) -> None:
    tidemark = ("tidemark", "streams")
    made = run_airflow(*tidemark, "create", shop.schema, "--on", shop.table)
    assert made.returncode == 0, made.stderr
    shown = run_airflow(*tidemark, "show", shop.schema, "--output", "json").stdout
    assert '"origin": "catalog"' in shown
    assert f'"table": "{shop.table}"' in shown


@nightly(
    "a Hive metastore, and five starts of Spark",
    "test_sql_and_a_re_base_take_a_name_of_the_catalog",
)
def test_a_table_of_a_hive_metastore_is_found_and_followed(
    run_dag: RunDag, lake: Lake, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
    }
    extra = json.dumps({"spark_conf": conf})
    monkeypatch.setenv("AIRFLOW_CONN_HIVE", json.dumps({"conn_type": "tidemark", "extra": extra}))
    hook, application = TidemarkHook("hive"), Path(__file__).parent / "sql_application.py"

    def statements(*texts: str) -> None:
        SparkApplication(hook.settings).run_application(application, list(texts), name="hive")

    statements(
        "CREATE DATABASE shop",
        f"CREATE TABLE shop.orders (id INT) USING delta {TRACKED}",
        "INSERT INTO shop.orders VALUES (1)",
    )
    lake.create("hive.mirror", "id INT")
    with DAG("hive", schedule=None) as dag:
        create = CreateStreamOperator(
            task_id="create", stream="hive", on="spark_catalog.shop.orders", show_initial_rows=True, conn_id="hive"
        )
        consumed = ConsumeStreamOperator(
            task_id="consume", stream="hive", target="hive.mirror", write_as="append", outlets=[], conn_id="hive"
        )
        create >> consumed
    assert run_dag(dag, at=datetime(2026, 11, 1, tzinfo=UTC)).state == "success"
    statements("INSERT INTO shop.orders VALUES (2)", "ALTER TABLE shop.orders RENAME TO shop.renamed")
    with DAG("hive_on", schedule=None) as on:
        ConsumeStreamOperator(
            task_id="consume", stream="hive", target="hive.mirror", write_as="append", outlets=[], conn_id="hive"
        )
    assert run_dag(on, at=datetime(2026, 11, 2, tzinfo=UTC)).state == "success"
    assert lake.rows("hive.mirror") == [(1,), (2,)]
    assert get_stream(hook.open_store(), "hive").source.name == "spark_catalog.shop.renamed"


def appending(shop: Shop, target: str) -> ConsumeStreamOperator:
    return ConsumeStreamOperator(
        task_id="keep", stream=shop.schema, target=target, write_as="append", outlets=[], retries=0
    )


def create(shop: Shop, on: str) -> None:
    run(CreateStreamOperator(task_id="create", stream=shop.schema, on=on))


def run(operator: BaseOperator) -> Any:
    instance = SimpleNamespace(dag_id="d", run_id="r", task_id=operator.task_id, map_index=-1, try_number=1)
    return operator.execute({"ti": instance})  # type: ignore[arg-type,typeddict-item]


def begun(
    shop: Shop, hook: TidemarkHook, run_id: str, *, target: str | None = None, path: str | None = None
) -> tuple[Runtime, Begun]:
    runtime = hook.runtime(SparkJob(hook.settings).run)
    write = WriteRequest(streams=(shop.schema,), targets=(target or shop.mirror,), write_as="append")
    return runtime, begin(
        runtime,
        key=TransactionKey(shop.schema, run_id, "consume"),
        streams=[shop.schema],
        writes=planned_writes(write, hook.table_uri if path is None else lambda _: path),
        owner="a worker",
    )
