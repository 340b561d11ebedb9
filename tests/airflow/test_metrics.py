"""What Airflow's metrics hear, by a real StatsD socket; nobody listens, nothing is lost but the metric. No Spark."""

from __future__ import annotations

import json
import re
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk import DAG, task

from tests.airflow.command_line import run_airflow
from tests.airflow.evidence import FOR_EVERY_STATEMENT
from tests.airflow.runs import Outcome
from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark import metrics
from tidemark.control.object_kinds import KINDS, Severity
from tidemark.delivery.model.transactions import CommitResult, DeliveredWindow
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.metrics import METRICS
from tidemark.model.statements import Evidence, TransactionKey
from tidemark.model.streams import StreamMode
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.streams.worker.streams import create_stream
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]
FIRST, SECOND = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC)
DOCS = Path(__file__).parents[2] / "provider/docs/reference/metrics.md"
COUNTS = len(KINDS) * len(Severity) + 3 + 2  # of objects by kind and severity, of needs, and without a look


class Listener:
    """A StatsD server as far as a datagram goes."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.3)
        self.port = self.socket.getsockname()[1]

    def heard(self, *, of_tasks: bool = False) -> dict[str, str]:
        """Name → value and kind of all of ours since the last time; counts are added up. `of_tasks`: those of each
        task's end, which are left out else.
        """
        found: dict[str, str] = {}
        counts: defaultdict[str, float] = defaultdict(float)
        try:
            while True:
                for line in self.socket.recv(65536).decode().splitlines():
                    name, _, told = line.partition(":")
                    if "tidemark" not in name or (".task_" in name) != of_tasks:
                        continue
                    number, _, kind = told.partition("|")
                    counts[name] += float(number) if kind == "c" else 0
                    found[name.removeprefix("airflow.tidemark.")] = f"{counts[name]:g}|c" if kind == "c" else told
        except TimeoutError:
            return found


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    made = Listener()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(made.port))
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
    yield made
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
    made.socket.close()


@pytest.fixture
def source(hook: TidemarkHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyntheticTable:
    """With four commits that the stream `order.changes` has not read."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    table = SyntheticTable(tmp_path / "lake/s/source")
    SyntheticTable(tmp_path / "lake/s/target")
    for _ in range(4):
        table.append()
    create_stream(
        TidemarkHook().open_store(),
        name="order.changes",
        source=TidemarkHook().table("s.source"),
        mode=StreamMode.APPEND_ONLY,
        at_version=0,
        who="ana",
    )
    return table


def consuming(dag_id: str) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        ConsumeStreamOperator(
            task_id="deliver", stream="order.changes", target="s.target", write_as="append", max_commits=3
        )
    return dag


def test_a_delivery_tells_rows_versions_lag_and_the_seconds_of_its_job(
    listener: Listener, source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit(FOR_EVERY_STATEMENT)
    dag = consuming("metrics_delivered")
    assert run_dag(dag, FIRST).state == "success"
    heard = listener.heard()
    seconds = float(heard.pop("job_duration").partition("|")[0]) / 1000
    assert 0 < seconds < 60
    assert {name: value for name, value in heard.items() if "job_duration" not in name and "seconds" not in name} == {
        "rows_delivered": "4|c", "rows_delivered.order__changes": "4|c",
        "windows_delivered": "1|c", "windows_delivered.order__changes": "1|c",
        "versions_read": "3|c", "versions_read.order__changes": "3|c",
        "lag_versions": "1|g", "lag_versions.order__changes": "1|g",
        "failures_in_row": "0|g", "failures_in_row.order__changes": "0|g",
    }  # fmt: skip
    assert {"job_duration.order__changes.write", "lag_seconds.order__changes"} <= set(heard)


def test_a_clear_delivers_nothing_and_counts_nothing_twice(
    listener: Listener, source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit(FOR_EVERY_STATEMENT)
    dag = consuming("metrics_cleared")
    run_dag(dag, FIRST)
    listener.heard()
    assert run_dag(dag, FIRST).state == "success"
    assert listener.heard() == {}


def test_a_failed_attempt_is_counted_with_its_stream(
    listener: Listener, source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit("exit 1")
    assert run_dag(consuming("metrics_failed"), FIRST).state == "failed"
    heard = listener.heard()
    assert heard["deliveries_failed.order__changes"] == "1|c"
    assert heard["failures_in_row.order__changes"] == "1|g"
    assert "rows_delivered" not in heard
    assert "job_duration.order__changes.write" in heard


def test_a_group_tells_its_commit_an_empty_window_and_a_rollback(
    listener: Listener, source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn
) -> None:
    with DAG("metrics_group", schedule=None) as dag, stream_transaction("tx", streams="order.changes"):
        WriteStreamOperator(task_id="w", target="s.target", write_as="append")
    spark_submit("exit 1")
    assert run_dag(dag, FIRST).state == "failed"
    heard = listener.heard()
    assert (heard["transactions_rolled_back"], heard["deliveries_failed"]) == ("1|c", "1|c")
    spark_submit(FOR_EVERY_STATEMENT)
    assert run_dag(dag, FIRST).state == "success"
    heard = listener.heard()
    assert (heard["windows_delivered"], heard["rows_delivered"], heard["lag_versions"]) == ("1|c", "4|c", "0|g")
    assert "transactions_rolled_back" not in heard
    assert run_dag(dag, SECOND).state == "success"
    heard = listener.heard()
    assert heard["windows_empty.order__changes"] == "1|c"
    assert "rows_delivered" not in heard


def test_windows_of_others_and_looks_are_told(listener: Listener) -> None:
    window = DeliveredWindow("a", 1, 4, False, 2.5)
    metrics.taken_over([CommitResult(TransactionKey("d", "r", "t"), (window,), 1, (), FIRST)])
    metrics.polled("a", True)
    assert listener.heard() == {
        "windows_taken_over": "1|c",
        "windows_taken_over.a": "1|c",
        "looks": "1|c",
        "looks.a": "1|c",
    }


def test_bytes_of_a_commit_are_those_of_its_evidence_that_are_known(listener: Listener) -> None:
    windows = tuple(DeliveredWindow(name, 1, 4, False, None) for name in "ab")
    sizes = (700, None, 300)
    proofs = tuple(Evidence(number, "t", 1, 1, "", bytes=size) for number, size in enumerate(sizes))
    for evidence in (proofs, proofs[1:2], ()):
        metrics.delivered(CommitResult(TransactionKey("d", "r", "t"), windows, 1, evidence, FIRST))
    heard = listener.heard()
    assert {name: heard[name] for name in heard if "bytes" in name} == {
        "bytes_delivered": "1000|c", "bytes_delivered.a_and_b": "1000|c",
    }  # fmt: skip


def test_tags_go_to_a_backend_that_has_them(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    metrics.failed(["b c", "a"], ValueError())
    assert listener.heard() == {"deliveries_failed,stream=a_and_b_c,error=ValueError": "1|c"}


@pytest.mark.parametrize("wrong", [ValueError, OSError, RuntimeError])
def test_a_backend_that_fails_fails_no_task(
    wrong: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.observability import stats

    def broken(*_: object, **__: object) -> None:
        raise wrong("the backend")

    monkeypatch.setattr(stats, "incr", broken)
    metrics.polled("a", False)
    assert "tidemark.looks was not sent: the backend" in caplog.text


def test_without_a_backend_the_lake_is_not_asked_for_a_lag(
    source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_submit(FOR_EVERY_STATEMENT)
    monkeypatch.setattr(metrics, "lag_in_versions", lambda *_: pytest.fail("asked"))
    assert run_dag(consuming("metrics_off"), FIRST).state == "success"


def test_the_end_of_a_replications_run_tells_lag_and_failures(listener: Listener) -> None:
    metrics.replicated("shop", lag_seconds=None, lag_bytes=0, failed_objects=0)
    assert "replication_lag_seconds" not in listener.heard()
    metrics.replicated("shop", lag_seconds=1.5, lag_bytes=16, failed_objects=2)
    heard = listener.heard()
    assert {name: heard[f"replication_{name}.shop"] for name in ("lag_seconds", "lag_bytes", "objects_failed")} == {
        "lag_seconds": "1.5|g", "lag_bytes": "16|g", "objects_failed": "2|g",
    }  # fmt: skip


def test_the_end_of_a_task_tells_its_seconds_and_its_failures(
    listener: Listener, source: SyntheticTable, run_dag: RunDag, spark_submit: StandIn
) -> None:
    spark_submit("exit 1")
    assert run_dag(consuming("metrics_task"), FIRST).state == "failed"
    heard = listener.heard(of_tasks=True)
    assert heard["task_failures.stream.order__changes"] == heard["task_failures"] == "1|c"
    assert heard["task_duration.stream.order__changes"].endswith("|ms")
    spark_submit(FOR_EVERY_STATEMENT)
    assert run_dag(consuming("metrics_task"), FIRST).state == "success"
    heard = listener.heard(of_tasks=True)
    assert "task_failures" not in heard
    assert 0 < float(heard["task_seconds.stream.order__changes"].removesuffix("|c")) < 60


def test_a_command_sends_the_gauges_of_every_object(listener: Listener, source: SyntheticTable) -> None:
    assert run_airflow("tidemark", "metrics", "emit", "--every", "0").returncode == 1
    said = run_airflow("tidemark", "metrics", "emit")
    heard = listener.heard()
    assert (said.returncode, said.stdout) == (0, f"{COUNTS + 5} gauges were sent.\n")
    assert heard["object_lag_amount.stream.order__changes"] == "4|g"
    assert float(heard["object_hours_to_stale.stream.order__changes"].removesuffix("|g")) > 24
    assert heard["object_severity.stream.order__changes"] == "0|g"
    assert heard["needs"] == "0|g"


def test_a_task_sends_them_too(listener: Listener, source: SyntheticTable, run_dag: RunDag) -> None:
    with DAG("metrics_gauges", schedule=None) as dag:
        task(metrics.emit_gauges, task_id="emit")("tidemark_default")
    outcome = run_dag(dag, FIRST)
    assert outcome.state == "success"
    assert listener.heard()["object_lag_amount.stream.order__changes"] == "4|g"


def test_without_a_backend_the_command_says_so(airflow_home: Path, source: SyntheticTable) -> None:
    said = run_airflow("tidemark", "metrics", "emit")
    assert said.returncode == 1
    assert "statsd_on" in said.stderr


def test_every_metric_is_in_the_docs_and_in_the_command_and_every_documented_one_exists(airflow_home: Path) -> None:
    documented = re.findall(
        r"^\| `tidemark\.(\w+)` \| (\w+) \| ([^|]+) \| .* \| ([^|]*) \|$", DOCS.read_text(), re.MULTILINE
    )
    wanted = [(one.name, one.type.value, one.unit, ", ".join((*one.objects, *one.tags))) for one in METRICS.values()]
    assert sorted(documented) == sorted(wanted)
    listed = json.loads(run_airflow("tidemark", "metrics", "list", "--output", "json").stdout)
    assert [one["name"] for one in listed] == [f"tidemark.{name}" for name in METRICS]
