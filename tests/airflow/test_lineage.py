"""What OpenLineage hears of a task, by Airflow's real listener and the real client, into a file. No Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.evidence import FOR_EVERY_STATEMENT
from tests.airflow.runs import Outcome
from tests.guarantees import synthetic_tables
from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lineage.datasets import name_of
from tidemark.model.streams import StreamMode
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.streams.worker.streams import create_stream
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]
Events = Callable[[str], list[dict[str, Any]]]
FIRST, SECOND = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)

SOURCE = [
    ("id", "long"), ("Name", "string"), ("price", "integer"),
    ("place", {"type": "struct", "fields": [{"name": "city", "type": "string", "nullable": True, "metadata": {}}]}),
    (
        "tags",
        {
            "type": "map",
            "keyType": "string",
            "valueType": {"type": "array", "elementType": "long", "containsNull": True},
            "valueContainsNull": True,
        },
    ),
]  # fmt: skip
WIDER: dict[str, Any] = {"schema_evolution": "add"}  # the source has columns that the targets lack
TARGET = [("id", "long"), ("name", "string"), ("price", "long"), ("own", "string")]


@pytest.fixture
def events(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """Airflow's listener with a file for a backend; the events of a task, in order."""
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import OpenLineageListener
    from airflow.sdk.listener import get_listener_manager

    manager = get_listener_manager()  # with all plugins; that of OpenLineage is off as long as it has no transport

    def forget() -> None:
        for function in vars(conf).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()

    file = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__NAMESPACE", "tests")
    forget()
    listener = OpenLineageListener()
    manager.add_listener(listener)

    def of_task(task_id: str) -> list[dict[str, Any]]:
        told = [json.loads(line) for line in file.read_text().splitlines()]
        return [event for event in told if event["job"]["name"].endswith(f".{task_id}")]

    yield of_task
    manager.pm.unregister(listener)
    monkeypatch.undo()
    forget()


@pytest.fixture
def lake(hook: TidemarkHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source with two commits that the stream `changes` has not read, and two targets."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    source = table(tmp_path / "lake/s/source", SOURCE, monkeypatch)
    table(tmp_path / "lake/s/target", TARGET, monkeypatch)
    table(tmp_path / "lake/s/other", TARGET, monkeypatch)
    source.append()
    source.append()
    create_stream(
        TidemarkHook().open_store(),
        name="changes",
        source=TidemarkHook().table("s.source"),
        mode=StreamMode.STANDARD,
        at_version=0,
        who="ana",
    )
    return tmp_path / "lake"


def table(path: Path, columns: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> SyntheticTable:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    monkeypatch.setattr(synthetic_tables, "SCHEMA", json.dumps({"type": "struct", "fields": fields}))
    return SyntheticTable(path)


def consuming(dag_id: str, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        ConsumeStreamOperator(task_id="deliver", stream="changes", **arguments)
    return dag


def test_a_merge_tells_both_tables_with_version_columns_window_and_rows(
    events: Events, lake: Path, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit(f"{driver(lake)}; {FOR_EVERY_STATEMENT}")
    assert (
        run_dag(consuming("lineage_merge", target="s.target", write_as="merge", keys=["ID"], **WIDER), FIRST).state
        == "success"
    )
    start, complete = events("deliver")
    assert (start["eventType"], start["inputs"], start["outputs"]) == ("START", [], [])
    assert complete["eventType"] == "COMPLETE"
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{lake}/s/source")
    assert read["facets"]["version"]["datasetVersion"] == "2"
    assert [(f["name"], f["type"]) for f in read["facets"]["schema"]["fields"]] == [
        ("id", "long"), ("Name", "string"), ("price", "integer"), ("place", "struct"),
        ("tags", "map<string,array<long>>"),
    ]  # fmt: skip
    assert read["facets"]["schema"]["fields"][3]["fields"][0]["name"] == "city"
    window = read["inputFacets"]["tidemark_window"]
    assert (window["stream"], window["mode"], window["kind"], window["fromVersion"], window["toVersion"]) == (
        "changes", "standard", "changes", 0, 2,
    )  # fmt: skip
    assert (written["namespace"], written["name"]) == ("file", f"{lake}/s/target")
    assert written["facets"]["version"]["datasetVersion"] == "1"
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert written["outputFacets"]["tidemark_delivery"]["deleted"] == 1
    columns = written["facets"]["columnLineage"]
    of = {name: found["inputFields"][0] for name, found in columns["fields"].items()}
    assert {name: (one["field"], one["transformations"][0]["subtype"]) for name, one in of.items()} == {
        "id": ("id", "IDENTITY"), "name": ("Name", "IDENTITY"), "price": ("price", "TRANSFORMATION"),
    }  # fmt: skip
    assert (of["name"]["namespace"], of["name"]["name"]) == ("file", f"{lake}/s/source")
    assert [(one["field"], one["transformations"][0]["subtype"]) for one in columns["dataset"]] == [("id", "JOIN")]


def test_sql_tells_its_text_and_what_it_reads_beside_the_stream_and_no_columns(
    events: Events, lake: Path, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit(f"{driver(lake)}; {FOR_EVERY_STATEMENT}")
    sql = "INSERT INTO s.target SELECT c.id, o.name FROM changes c JOIN s.other o ON c.id = o.id"
    assert run_dag(consuming("lineage_sql", write_as="sql", sql=sql), FIRST).state == "success"
    complete = events("deliver")[-1]
    assert complete["job"]["facets"]["sql"]["query"] == sql
    assert [one["name"] for one in complete["inputs"]] == [f"{lake}/s/source", f"{lake}/s/other"]
    assert "version" not in complete["inputs"][1]["facets"]
    assert complete["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "columnLineage" not in complete["outputs"][0]["facets"]


def test_a_failure_tells_the_error_and_no_version_of_what_is_not_written(
    events: Events, lake: Path, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit("echo 'the reason'; exit 3")
    assert run_dag(consuming("lineage_failed", target="s.target", write_as="append", **WIDER), FIRST).state == "failed"
    failed = events("deliver")[-1]
    assert failed["eventType"] == "FAIL"
    assert "the reason" in failed["run"]["facets"]["errorMessage"]["message"]
    assert failed["inputs"][0]["inputFacets"]["tidemark_window"]["toVersion"] == 2
    (output,) = failed["outputs"]
    assert output["name"] == f"{lake}/s/target"
    assert "version" not in output.get("facets", {})
    assert not output.get("outputFacets")


def test_a_clear_and_an_empty_window_are_told_as_they_are(
    events: Events, lake: Path, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit(f"{driver(lake)}; {FOR_EVERY_STATEMENT}")
    dag = consuming("lineage_again", target="s.target", write_as="append", **WIDER)
    run_dag(dag, FIRST)
    run_dag(dag, FIRST)
    first, cleared = (event for event in events("deliver") if event["eventType"] == "COMPLETE")
    assert (cleared["inputs"], cleared["outputs"]) == (first["inputs"], first["outputs"])
    run_dag(dag, SECOND)
    empty = events("deliver")[-1]
    assert [one["name"] for one in (*empty["inputs"], *empty["outputs"])] == [f"{lake}/s/source", f"{lake}/s/target"]
    assert "outputFacets" not in empty["outputs"][0] or not empty["outputs"][0]["outputFacets"]


def test_in_a_group_each_writer_tells_its_own_and_commit_nothing_twice(
    events: Events, lake: Path, run_dag: RunDag, spark_submit: StandIn
) -> None:
    with DAG("lineage_group", schedule=None) as dag, stream_transaction("tx", streams="changes"):
        WriteStreamOperator(task_id="a", target="s.target", write_as="append", **WIDER)
        WriteStreamOperator(task_id="b", target=["s.other"], write_as="stream_functions:f", tables=["s.target"])
    spark_submit(f"{driver(lake)}; {FOR_EVERY_STATEMENT}")
    assert run_dag(dag, FIRST).state == "success"
    told = {task: events(f"tx.{task}")[-1] for task in ("a", "b", "begin", "commit")}
    assert {task: [one["name"].rpartition("/")[2] for one in event["outputs"]] for task, event in told.items()} == {
        "a": ["target"], "b": ["other"], "begin": [], "commit": [],
    }  # fmt: skip
    assert [one["name"].rpartition("/")[2] for one in told["b"]["inputs"]] == ["source", "target"]
    assert "columnLineage" in told["a"]["outputs"][0]["facets"]
    assert "columnLineage" not in told["b"]["outputs"][0]["facets"]


DAG_FILE = """
from airflow.sdk import DAG
from tidemark.operators.consume import ConsumeStreamOperator

with DAG("supervised_lineage"):
    ConsumeStreamOperator(
        task_id="deliver", stream="changes", target="s.target", write_as="append", schema_evolution="add"
    )
"""


def test_under_a_supervisor_the_connection_is_not_asked_for_again_by_the_listeners_fork(
    lake: Path, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit(f"{driver(lake)}; {FOR_EVERY_STATEMENT}")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/lineage.py").write_text(DAG_FILE)
    log, asked, file = tmp_path / "task.log", tmp_path / "asked", tmp_path / "events.jsonl"
    given = {
        "dags": str(tmp_path / "dags"), "file": "lineage.py", "dag": "supervised_lineage", "task": "deliver",
        "connections": {"tidemark_default": {"conn_type": "tidemark"}}, "log": str(log), "asked": str(asked),
    }  # fmt: skip
    transport = json.dumps({"type": "file", "log_file_path": str(file), "append": True})
    done = subprocess.run(
        [sys.executable, "-m", "tests.airflow.supervised"],
        input=json.dumps(given), env={**os.environ, "AIRFLOW__OPENLINEAGE__TRANSPORT": transport},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert file.exists(), log.read_text() + done.stderr
    start, complete = [json.loads(line) for line in file.read_text().splitlines()]
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert complete["outputs"][0]["outputFacets"]["tidemark_delivery"]["inserted"] == 3
    requests = [line.split(" ", 2)[1].partition("://server/")[2] for line in asked.read_text().splitlines()]
    assert requests.count("connections/tidemark_default") == 3  # for the work, and for the links before and after it
    assert requests[-1].endswith("_link_SparkUiLink")  # after it the listener is told, whose fork asked for nothing


def test_a_dry_run_has_no_lineage() -> None:
    task = ConsumeStreamOperator(task_id="k", stream="changes", target="s.t", write_as="append", dry_run=True)
    assert task.get_openlineage_facets_on_complete(None) is None


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("file:///lake/a b/t", ("file", "/lake/a b/t")),
        ("s3://bucket/lake/s/t", ("s3://bucket", "lake/s/t")),
        ("gs://bucket/t?x=1#y", ("gs://bucket", "t?x=1#y")),
        ("abfss://c@account.dfs.core.windows.net/s/t", ("abfss://c@account.dfs.core.windows.net", "s/t")),
        ("abfs://c@account.dfs.core.windows.net/s/t", ("abfss://c@account.dfs.core.windows.net", "s/t")),
        ("hdfs://namenode:8020/lake/t", ("hdfs://namenode:8020", "/lake/t")),
    ],
)
def test_tables_are_named_as_spark_and_others_name_them(uri: str, named: tuple[str, str]) -> None:
    assert name_of(uri) == named


def test_operators_are_imported_where_openlineage_is_not_installed() -> None:
    code = (
        "import sys; sys.modules.update({'openlineage': None, 'openlineage.client': None})\n"
        "import tidemark.operators.consume, tidemark.operators.transaction\n"
        "assert not [m for m in sys.modules if m.startswith('tidemark.lineage')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def driver(lake: Path) -> str:
    """Makes the commits that the evidence speaks of, so that their versions are there to be read."""
    version = "00000000000000000001.json"
    return f"for t in {lake}/s/target {lake}/s/other; do echo '{{\"commitInfo\":{{}}}}' > $t/_delta_log/{version}; done"
