"""Metrics by a backend that keeps what it hears: bounded names, and the end of each task with its objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tests.architecture.operator_pages import public
from tidemark import metrics
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, StoreUnreachable, TableNotFound, TidemarkError
from tidemark.hooks import _metrics
from tidemark.hooks._metrics import look_within
from tidemark.metrics import OwnNames
from tidemark.model.metrics import METRICS, OTHER, Together, cleaned
from tidemark.model.readings import Reading
from tidemark.model.streams import StreamMode, TableRef
from tidemark.operators._measures import MEASURED, Measure, Work, measured, works_of
from tidemark.streams.worker.streams import create_stream

assert HOME
Heard = list[tuple[str, float, dict[str, str]]]


class Keeps:
    """A backend of Airflow's, as StatsD or OpenTelemetry, that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: Heard = []

    def _keep(self, stat: str, value: Any, tags: dict[str, str] | None) -> None:
        number = value.total_seconds() if isinstance(value, timedelta) else value
        self.heard.append((stat, number, dict(tags or {})))

    def incr(self, stat: str, count: float = 1, *, tags: dict[str, str] | None = None) -> None:
        self._keep(stat, count, tags)

    def gauge(self, stat: str, value: float, *, tags: dict[str, str] | None = None) -> None:
        self._keep(stat, value, tags)

    def timing(self, stat: str, dt: Any, *, tags: dict[str, str] | None = None) -> None:
        self._keep(stat, dt, tags)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    backend: Any = Keeps()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")
    monkeypatch.setattr(_metrics, "_own", OwnNames())
    stats.initialize(factory=lambda: backend, export_legacy_names=False)
    yield backend.heard
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)


@pytest.fixture
def store(tmp_path: Path) -> ControlStore:
    """With the streams a to e, and B."""
    made = ControlStore(f"sqlite:///{tmp_path}/control.db")
    for name in ("e", "d", "B", "c", "a"):
        table = TableRef(f"s.{name}", f"file:///lake/s/{name}", name)
        create_stream(made, name=name, source=table, mode=StreamMode.STANDARD, at_version=0, who="ana")
    return made


def most(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setenv("AIRFLOW__TIDEMARK__METRICS_OBJECTS", str(number))


def test_names_become_what_every_backend_takes() -> None:
    assert cleaned("shop/orders ü|,=:#") == "shop_orders_______"
    assert cleaned("shop.orders-2") == "shop.orders-2"
    long = [cleaned(letter * 3000) for letter in "ab"]
    assert [len(one) for one in long] == [100, 100]
    assert cleaned("a" * 200) != cleaned("a" * 201)


@pytest.mark.parametrize("given", ["", "many"])
def test_a_number_of_names_that_is_none_fails_no_task(
    given: str, heard: Heard, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__TIDEMARK__METRICS_OBJECTS", given)
    own = OwnNames()
    own.ask("here", lambda: store)
    assert own.tag("stream", "e") == "e"


def test_the_first_names_of_a_kind_have_tags_of_their_own(
    heard: Heard, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    most(monkeypatch, 3)
    metrics.names_from("here", lambda: store)
    for name in "eadBc":
        metrics.polled(name, found=True)
    assert [tags["stream"] for _, _, tags in heard] == [OTHER, "a", OTHER, "B", "c"]
    heard.clear()
    metrics.rolled_back(["e", "a", "d"])
    assert heard == [("tidemark.transactions_rolled_back", 1, {"stream": "a_and_other"})]


def test_none_has_one_if_it_is_turned_off_and_all_have_if_there_are_few(
    heard: Heard, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics.names_from("here", lambda: store)
    for number in (0, 5):
        most(monkeypatch, number)
        monkeypatch.setattr(_metrics, "_own", OwnNames())
        metrics.names_from("here", lambda: store)
        metrics.polled("e", found=False)
    assert [tags["stream"] for _, _, tags in heard] == [OTHER, "e"]


def test_the_time_for_looks_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_within() == timedelta(hours=1)
    monkeypatch.setenv("AIRFLOW__TIDEMARK__LOOK_MINUTES", "90")
    assert look_within() == timedelta(minutes=90)
    for wrong in ("0", "-1", "525601", "an hour", "1.5"):
        monkeypatch.setenv("AIRFLOW__TIDEMARK__LOOK_MINUTES", wrong)
        with pytest.raises(InvalidArgument, match="look_minutes"):
            look_within()


def test_kinds_that_no_store_lists_have_no_names(heard: Heard, store: ControlStore) -> None:
    metrics.names_from("here", lambda: store)
    metrics.worked_on("table", "s.orders", rows=1, size=None)
    assert heard == [("tidemark.object_rows", 1, {"kind": "table", "object": OTHER})]


def test_the_store_is_asked_once_a_minute(store: ControlStore) -> None:
    opened, now = [], [0.0]
    own = OwnNames(clock=lambda: now[0])

    def opening() -> ControlStore:
        opened.append(1)
        return store

    own.ask("here", opening)
    for seconds in (0, 59, 61, 62):
        now[0] = seconds
        own.ask("here", opening)
        assert own.tag("stream", "a") == "a"
    assert len(opened) == 2


def test_a_store_that_is_away_costs_names_alone(heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    def away() -> ControlStore:
        raise StoreUnreachable(url="postgresql://nowhere", problem="refused")

    metrics.names_from("nowhere", away)
    metrics.failed(["a"], ValueError())
    assert heard == [("tidemark.deliveries_failed", 1, {"stream": OTHER, "error": "ValueError"})]
    assert "the control store does not answer" in caplog.text


def test_gauges_under_one_tag_are_the_worst_of_them(
    heard: Heard, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    most(monkeypatch, 1)
    metrics.names_from("here", lambda: store)
    sent = metrics.observed(
        Reading(name, value, {"kind": "stream", "object": stream})
        for name in ("object_lag_seconds", "object_hours_to_stale")
        for stream, value in (("a", 5.0), ("c", 7.0), ("d", 3.0))
    )
    assert sent == len(heard) == 4
    assert {(name, tags["object"]): value for name, value, tags in heard} == {
        ("tidemark.object_lag_seconds", "a"): 5, ("tidemark.object_lag_seconds", OTHER): 7,
        ("tidemark.object_hours_to_stale", "a"): 5, ("tidemark.object_hours_to_stale", OTHER): 3,
    }  # fmt: skip


class Waits:
    """As an operator that has a pipe, and does what a test says."""

    def __init__(self, act: Any) -> None:
        self.pipe, self.act = "shop.files", act

    @measured
    def execute(self, context: Any) -> Any:
        return self.act()


class RunPipeOperator(Waits):
    """The name by which it is measured."""

    @measured
    def execute(self, context: Any) -> Any:
        return super().execute(context)


def run(act: Any, attempt: int = 1) -> None:
    RunPipeOperator(act).execute({"ti": SimpleNamespace(try_number=attempt)})


def raising(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


def by_name(heard: Heard) -> dict[str, tuple[float, dict[str, str]]]:
    found = {name.removeprefix("tidemark."): (value, tags) for name, value, tags in heard}
    assert len(found) == len(heard)
    return found


def test_the_end_of_a_task_tells_seconds_rows_and_bytes_once(heard: Heard) -> None:
    run(lambda: {"rows_loaded": 7, "bytes_loaded": 900, "files": 2})
    found = by_name(heard)
    pipe = {"kind": "pipe", "object": "shop.files"}
    assert found["object_rows"] == (7, pipe)
    assert found["object_bytes"] == (900, pipe)
    for name in ("task_duration", "task_seconds"):
        seconds, tags = found[name]
        assert 0 <= seconds < 60
        assert tags == {**pipe, "operator": "RunPipeOperator", "outcome": "success"}
    assert found.keys() == {"object_rows", "object_bytes", "task_duration", "task_seconds"}


def test_a_failed_retry_tells_its_error(heard: Heard) -> None:
    with pytest.raises(TidemarkError):
        run(raising(TableNotFound(path="file:///lake/s")), attempt=3)
    found = by_name(heard)
    of = {"kind": "pipe", "object": "shop.files", "operator": "RunPipeOperator"}
    assert found["task_failures"] == (1, {**of, "error": "TableNotFound"})
    assert found["task_retries"] == (1, of)
    assert found["task_duration"][1]["outcome"] == "TableNotFound"
    heard.clear()
    with pytest.raises(KeyError):
        run(raising(KeyError("x")))
    assert by_name(heard)["task_failures"][1]["error"] == "error"


def test_a_skip_is_no_failure_and_a_deferral_no_end(heard: Heard) -> None:
    from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred
    from airflow.triggers.testing import SuccessTrigger

    with pytest.raises(AirflowSkipException):
        run(raising(AirflowSkipException("nothing")))
    assert {tags["outcome"] for _, _, tags in heard} == {"skipped"}
    heard.clear()
    with pytest.raises(TaskDeferred):
        run(raising(TaskDeferred(trigger=SuccessTrigger(), method_name="x")))
    assert heard == []


REPLICATED = Measure("replicated_table", "object_name", "replication", rows="rows")
VIEWS = MEASURED["RefreshDueViewsOperator"]


@pytest.mark.parametrize(
    ("measure", "operator", "result", "works"),
    [
        (REPLICATED, {"replication": "shop", "object_name": "s.t"}, {"rows": 5, "found": False},
         [Work("replicated_table", "shop/s.t", 5)]),
        (REPLICATED, {"replication": "shop", "object_name": "s.t"}, {"rows": 5, "found": True}, []),
        (REPLICATED, {"replication": "shop"}, {"objects": {"s.a": 3, "s.b": {"rows": {"inserted": 1, "deleted": 2}}}},
         [Work("replicated_table", "shop/s.a", 3), Work("replicated_table", "shop/s.b", 3)]),
        (VIEWS, {"views": None}, [{"view": "a", "rows": 2, "bytes": 8}, {"view": "b", "rows": None, "bytes": None}],
         [Work("dynamic_table", "a", 2, 8)]),
        (MEASURED["CaptureChangesOperator"], {"change_stream": "orders"}, {"rows": 4, "batch": 1},
         [Work("change_stream", "orders", 4)]),
        (MEASURED["DropStreamOperator"], {"stream": "a"}, True, []),
        (MEASURED["PlanPartitionsOperator"], {}, [{"rows": 3}], []),
    ],
)  # fmt: skip
def test_rows_and_bytes_are_those_of_the_tasks_result(
    measure: Measure, operator: dict[str, Any], result: object, works: list[Work]
) -> None:
    assert list(works_of(SimpleNamespace(**operator), measure, result)) == works


def test_every_operator_is_measured_and_nothing_else() -> None:
    from tidemark.operators._base import TidemarkOperator

    operators = {name for name, one in public().items() if isinstance(one, type) and issubclass(one, TidemarkOperator)}
    assert set(MEASURED) == operators


def test_what_an_operator_is_measured_by_are_its_arguments() -> None:
    import inspect

    for name, one in public().items():
        measure = MEASURED.get(name)
        given = set() if measure is None else {measure.argument, measure.within} - {None}
        assert given <= inspect.signature(one).parameters.keys(), name


def test_every_name_that_is_sent_is_in_the_table_with_its_tags_and_every_other_one_is_not_there() -> None:
    text = "".join(Path(module.__file__).read_text() for module in (metrics, _metrics))
    sent = set(re.findall(r'\bemit\("(\w+)"|"(windows_\w+)"', text))
    by_tasks = {name for found in sent for name in found if name}
    from tidemark.streams.worker import gauges

    by_looks = set(re.findall(r'Reading\("(\w+)"', Path(gauges.__file__).read_text()))
    assert by_tasks == {name for name, one in METRICS.items() if not one.looks}
    assert by_looks == {name for name, one in METRICS.items() if one.looks}
    assert all(one.together in Together for one in METRICS.values())


def test_the_variable_that_the_page_names_has_counters_sent_as_what_was_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Airflow makes its exporter: a task that ends has no total, so only what it has counted adds up."""
    from airflow.sdk._shared.observability.common import get_otel_data_exporter
    from airflow.sdk._shared.observability.otel_env_config import load_metrics_env_config
    from opentelemetry.sdk.metrics import Counter, Histogram
    from opentelemetry.sdk.metrics.export import AggregationTemporality

    page = Path(__file__).parents[2] / "provider" / "docs" / "how-to" / "watch-with-prometheus.md"
    (said,) = re.findall(r"^(OTEL_EXPORTER_OTLP_\w+)=(\w+)$", page.read_text(), re.MULTILINE)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(*said)
    exporter: Any = get_otel_data_exporter(otel_env_config=load_metrics_env_config())
    sent = {kind: exporter._preferred_temporality[kind] for kind in (Counter, Histogram)}
    assert sent == dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)


def test_opentelemetry_makes_the_names_that_dashboard_and_alerts_have(heard: Heard) -> None:
    from airflow.sdk._shared.observability.metrics.otel_logger import SafeOtelLogger
    from airflow.sdk.observability import stats
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Sum

    reader = InMemoryMetricReader()
    backend: Any = SafeOtelLogger(MeterProvider([reader]), "airflow")
    stats.initialize(factory=lambda: backend, export_legacy_names=False)
    with pytest.raises(TableNotFound):
        run(raising(TableNotFound(path="file:///lake/s")), attempt=2)
    run(lambda: {"rows_loaded": 7, "bytes_loaded": 900})
    metrics.observed([Reading("object_lag_seconds", 5.5, {"kind": "pipe", "object": "shop.files"})])
    found = {}
    data: Any = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        is_counter = isinstance(metric.data, Sum) and metric.data.is_monotonic
        ending = "_total" if is_counter else "_milliseconds" if isinstance(metric.data, Histogram) else ""
        found[metric.name.replace(".", "_") + ending] = metric.data.data_points
    names = ("task_failures", "task_retries", "task_seconds", "task_duration", "object_rows", "object_bytes")
    assert found.keys() == {METRICS[name].prometheus for name in (*names, "object_lag_seconds")}
    (lag,) = found["airflow_tidemark_object_lag_seconds"]
    assert (lag.value, dict(lag.attributes)) == (5.5, {"kind": "pipe", "object": "shop.files"})
    (rows,) = found["airflow_tidemark_object_rows_total"]
    assert rows.value == 7
