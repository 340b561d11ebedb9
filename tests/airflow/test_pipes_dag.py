"""Tasks that load files: COPY INTO and runs of pipes, each file once, with a warning for each file that has errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from airflow.sdk import DAG, Asset

from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.spark import AVRO_PACKAGE
from tidemark.operators.copy_into import CopyIntoOperator
from tidemark.operators.pipes import CreatePipeOperator, RefreshPipeOperator, RunPipeOperator
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.worker import definitions, file_formats, stages

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
DAY = datetime(2026, 5, 1, tzinfo=UTC)
LOADED = Asset("loaded_orders")
FIELDS = [{"name": "name", "type": "string"}, {"name": "id", "type": "long"}]
AVRO = fastavro.parse_schema({"type": "record", "name": "orders", "fields": FIELDS})


@dataclass(frozen=True)
class Landing:
    """A lake with the table `shop.orders`, and a directory for files of it."""

    lake: Lake
    files: Path

    def put(self, name: str, *rows: str) -> None:
        (self.files / name).write_text("".join(f"{row}\n" for row in rows))

    def put_avro(self, name: str, *rows: tuple[int, str]) -> None:
        with (self.files / name).open("wb") as file:
            fastavro.writer(file, AVRO, [{"id": number, "name": text} for number, text in rows])

    def copy(self, more: str = "") -> str:
        return f"COPY INTO shop.orders FROM '{self.files}/' FILE_FORMAT = (TYPE = CSV) {more}"

    def rows(self) -> list[tuple[Any, ...]]:
        return self.lake.rows("shop.orders")

    def pipe(self, name: str, *, at: str = "", **more: Any) -> Pipe:
        statement = self.copy() if not at else f"COPY INTO shop.orders FROM {at}"
        queue = f"{self.lake.root}/shop/{name}__files"
        return definitions.create_pipe(self.store, f"shop.{name}", statement, queue=queue, by="a test", **more)

    @property
    def store(self) -> Any:
        return TidemarkHook().open_store()

    def state(self, name: str) -> Pipe:
        return definitions.get_pipe(self.store, f"shop.{name}")


@pytest.fixture
def landing(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> Landing:
    tables = {"shop.orders": "id BIGINT, name STRING"}
    mine = Landing(Lake.of_its_own(lake.spark, tmp_path, monkeypatch.setenv, tables), tmp_path / "in")
    mine.files.mkdir()
    return mine


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """The log lines of the tasks."""
    return lambda: " ".join((caplog.text + capfd.readouterr().out).split())


def one(dag_id: str, kind: type[Any], **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        kind(task_id="it", **arguments)
    return dag


def extras(outcome: Outcome) -> list[dict[str, Any]]:
    """Of the events of the asset, in order."""
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        mine = found.filter(AssetModel.name == LOADED.name, AssetEvent.source_run_id == outcome.run.run_id)
        mine = mine.filter(AssetEvent.source_dag_id == outcome.run.dag_id)
        return [dict(event.extra) for event in mine.order_by(AssetEvent.id)]


def test_a_statement_loads_each_file_once_and_a_cleared_run_has_the_report_of_the_first(
    run_dag: RunDag, landing: Landing, warm_spark: Path, said: Callable[[], str]
) -> None:
    landing.put("a.csv", "1,a", "2,b")
    landing.put("b.csv", "3,c", "x,d", "5,e")
    dag = one("copies", CopyIntoOperator, sql=landing.copy("ON_ERROR = CONTINUE"), outlets=[LOADED])
    first = run_dag(dag, at=DAY)
    done = first.returned("it")
    version = landing.lake.version("shop.orders")
    wanted = {"table": "shop.orders", "files": 2, "files_loaded": 2, "rows_loaded": 4, "errors_seen": 1}
    assert {name: done[name] for name in wanted} == wanted
    assert done["version"] == version
    assert [(bad["file"], bad["first_error_line"], bad["first_error_column"]) for bad in done["failed"]] == [
        ("b.csv", 2, "id")
    ]
    assert extras(first) == [
        {"table": "shop.orders", "files": 2, "rows": 4, "bytes": 8 + 12, "errors": 1, "version": version}
    ]
    assert "shop.orders: PARTIALLY_LOADED in file b.csv, line 2, character 1, column id" in said()
    landing.put("c.csv", "6,f")
    again = run_dag(dag, at=DAY).returned("it")
    assert (again["version"], again["rows_loaded"], len(landing.rows())) == (version, 4, 4)
    assert run_dag(dag, at=DAY.replace(day=2)).returned("it")["files"] == 1
    quiet = one("copies_nothing", CopyIntoOperator, sql=landing.copy(), skip_when_empty=True, outlets=[LOADED])
    assert (run_dag(quiet).task("it"), len(landing.rows())) == ("skipped", 5)


def test_a_statement_that_meets_an_error_loads_nothing_and_fails_at_once(
    run_dag: RunDag, landing: Landing, warm_spark: Path, said: Callable[[], str]
) -> None:
    landing.put("a.csv", "1,a", "x,b")
    failed = run_dag(one("aborts", CopyIntoOperator, sql=landing.copy(), retries=3))
    assert (failed.task("it"), landing.rows()) == ("failed", [])
    assert "CopyAborted: Nothing was loaded into table shop.orders. The first error is in file a.csv, line 2" in said()
    nowhere = "COPY INTO shop.orders FROM @nowhere"
    warm_spark.unlink(missing_ok=True)
    assert run_dag(one("from_nowhere", CopyIntoOperator, sql=nowhere)).task("it") == "failed"
    assert "There is no stage nowhere" in said()
    assert not warm_spark.exists(), "no JVM was started"


def test_a_pipe_is_made_once_changed_on_request_and_run(
    run_dag: RunDag, landing: Landing, warm_spark: Path, said: Callable[[], str]
) -> None:
    landing.put("a.csv", "1,a")
    landing.put("b.csv", "x,b", "3,c")
    name = "shop.orders_pipe"
    made = run_dag(one("makes", CreatePipeOperator, pipe=name, copy_statement=landing.copy())).returned("it")
    assert (made["table"], made["created"]) == ("shop.orders", True)
    assert made["queue"].endswith("/shop/orders_pipe__files")
    loads = one("loads", RunPipeOperator, pipe=name, outlets=[LOADED])
    first = run_dag(loads, at=DAY)
    done = first.returned("it")
    wanted = {"files": 2, "files_loaded": 1, "files_with_errors": 1, "rows_loaded": 1, "pending": 0}
    assert {key: done[key] for key in wanted} == wanted
    assert landing.rows() == [(1, "a")]
    (event,) = extras(first)
    assert {key: event[key] for key in ("pipe", "files", "rows", "bytes")} == {
        "pipe": name, "files": 1, "rows": 1, "bytes": 4,
    }  # fmt: skip
    assert "Pipe shop.orders_pipe: LOAD_FAILED in file b.csv, line 1, character 1, column id" in said()
    problem = landing.state("orders_pipe").problem
    assert problem is not None
    assert problem.startswith("1 of 2 files have errors. The first one is in file b.csv, line 1, character 1")

    assert run_dag(loads, at=DAY.replace(day=2)).returned("it")["files"] == 0
    other = landing.copy("ON_ERROR = CONTINUE")
    assert run_dag(one("keeps", CreatePipeOperator, pipe=name, copy_statement=other)).returned("it")["created"] is False
    assert "keeps it" in said()
    assert landing.state("orders_pipe").copy_statement == landing.copy()
    changes = one("changes", CreatePipeOperator, pipe=name, copy_statement=other, or_replace=True)
    assert run_dag(changes).returned("it")["queue"] == made["queue"]

    refreshed = run_dag(one("refreshes", RefreshPipeOperator, pipe=name)).returned("it")
    assert refreshed == {"pipe": name, "queued": 1, "known": 1}
    assert run_dag(loads, at=DAY.replace(day=3)).returned("it")["rows_loaded"] == 1
    assert landing.rows() == [(1, "a"), (3, "c")]
    assert run_dag(one("skips", RunPipeOperator, pipe=name, skip_when_empty=True)).task("it") == "skipped"


def test_avro_files_are_loaded_by_a_statement_and_by_a_pipe_whose_jobs_get_the_package_of_their_reader(
    run_dag: RunDag, landing: Landing, warm_spark: Path
) -> None:
    landing.put_avro("a.avro", (1, "a"), (2, "b"))
    (landing.files / "bad.avro").write_bytes(b"no avro at all")
    by_name = "MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE ON_ERROR = SKIP_FILE"
    statement = f"COPY INTO shop.orders FROM '{landing.files}/' FILE_FORMAT = (TYPE = AVRO) {by_name}"
    copied = run_dag(one("copies_avro", CopyIntoOperator, sql=statement)).returned("it")
    assert (copied["rows_loaded"], [bad["file"] for bad in copied["failed"]]) == (2, ["bad.avro"])
    assert landing.rows() == [(1, "a"), (2, "b")]
    assert warm_spark.read_text().count(AVRO_PACKAGE) == 1

    (landing.files / "bad.avro").unlink()
    file_formats.create_file_format(landing.store, "records", file_format("AVRO"))
    stages.create_stage(landing.store, "records", str(landing.files), format_name="records")
    landing.pipe("avro", at=f"@records {by_name}")
    landing.put_avro("b.avro", (3, "c"))
    loads = one("loads_avro", RunPipeOperator, pipe="shop.avro")
    assert run_dag(loads).returned("it")["files_loaded"] == 1
    assert landing.rows() == [(1, "a"), (2, "b"), (3, "c")]
    assert warm_spark.read_text().count(AVRO_PACKAGE) == 2


def test_a_run_takes_the_files_that_it_is_asked_for(run_dag: RunDag, landing: Landing, warm_spark: Path) -> None:
    landing.pipe("some", auto_ingest=False)
    for number, name in enumerate(("a1.csv", "a2.csv", "b1.csv")):
        landing.put(name, f"{number},n")

    def loaded(dag_id: str, **arguments: Any) -> int:
        return int(run_dag(one(dag_id, RunPipeOperator, pipe="shop.some", **arguments)).returned("it")["files"])

    assert loaded("none") == 0
    assert loaded("prefix", prefix="{{ 'a' }}", max_files="1", batches="1") == 1
    assert loaded("waiting") == 1
    assert loaded("late", modified_after="2999-01-01T00:00:00Z") == 0
    assert loaded("listed", list_files=True) == 1
    assert loaded("forced", list_files="{{ 'all' }}") == 3
    assert len(landing.rows()) == 6


def test_several_pipes_are_run_by_one_mapped_task_and_paused_ones_are_skipped(
    run_dag: RunDag, landing: Landing, warm_spark: Path, said: Callable[[], str]
) -> None:
    landing.put("a.csv", "1,a")
    for name in ("first", "second", "held"):
        landing.pipe(name)
    definitions.pause_pipe(landing.store, "shop.held", by="a test")
    with DAG("maps", schedule=None) as dag:
        RunPipeOperator.partial(task_id="it").expand(pipe=["shop.first", "shop.second", "shop.held"])
    done = run_dag(dag)
    states = {one.map_index: one.state for one in done.run.get_task_instances()}
    assert states == {0: "success", 1: "success", 2: "skipped"}
    assert landing.rows() == [(1, "a"), (1, "a")]
    heard = said()
    assert "Pipe shop.held has been paused since" in heard
    assert "SET PIPE_EXECUTION_PAUSED = FALSE" in heard


def test_a_pipe_whose_stage_is_dropped_stalls_before_a_jvm_starts_and_recovers(
    run_dag: RunDag, landing: Landing, warm_spark: Path, said: Callable[[], str]
) -> None:
    landing.put("a.csv", "1,a")
    file_formats.create_file_format(landing.store, "lines", file_format("CSV"))
    stages.create_stage(landing.store, "place", str(landing.files), format_name="lines")
    landing.pipe("staged", at="@place")
    for gone, state in (("lines", PipeState.STOPPED_FILE_FORMAT_DROPPED), ("place", PipeState.STOPPED_STAGE_DROPPED)):
        drop = file_formats.drop_file_format if gone == "lines" else stages.drop_stage
        drop(landing.store, gone)
        assert run_dag(one(f"without_{gone}", RunPipeOperator, pipe="shop.staged")).task("it") == "failed"
        stands = landing.state("staged")
        assert stands.stalled is state
        assert (stands.problem_run or "").startswith(f"without_{gone}/")
        assert not warm_spark.exists(), "no JVM was started"
    assert "There is no stage place" in said()
    stages.create_stage(landing.store, "place", str(landing.files))
    assert run_dag(one("again", RunPipeOperator, pipe="shop.staged")).returned("it")["rows_loaded"] == 1
    assert landing.state("staged").stalled is None
    assert run_dag(one("nobody", RunPipeOperator, pipe="shop.nobody")).task("it") == "failed"
    assert "PipeNotFound: There is no pipe shop.nobody. These exist: shop.staged" in said()
