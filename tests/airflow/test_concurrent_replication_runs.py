"""Runs of a replication at the same time: one is at a long backfill, or captures, and the others go on. No Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2.extras
import pytest
from airflow.sdk import DAG

from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tests.postgresql import PASSWORD, USER, PostgresServer
from tidemark.errors import JobDied
from tidemark.hooks.source_connection import source_address
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.operators.replication_objects import RequestBackfillOperator
from tidemark.operators.replications import CreateReplicationOperator, PrepareReplicationOperator
from tidemark.replication.model.jobs import BackfillReport
from tidemark.replication.model.replication import Actor, ObjectState, ReplicatedObject, ReplicationState
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.backfill import BackfillOutcome, run_backfill
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.objects import get_object
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime
from tidemark.task_groups.replicate import replicate

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
WITHIN = 400.0  # seconds; a run takes half a minute where much else runs


@pytest.fixture
def shop(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_dag: RunDag
) -> ReplicatedShop:
    """Orders and visits are replicated; neither is backfilled yet."""
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=10)
    with DAG("begins", schedule=None) as dag:
        create() >> PrepareReplicationOperator(task_id="prepare", replication=REPLICATION)
    assert run_dag(dag).state == "success"
    return shop


def create() -> CreateReplicationOperator:
    return CreateReplicationOperator(
        task_id="create",
        replication=REPLICATION,
        source_conn_id=CONN_ID,
        target="mirror",
        include=["shop.orders", "shop.visits"],
    )


def overlapping(runs: int = 3) -> DAG:
    with DAG("overlapping", schedule=None, max_active_runs=runs) as dag:
        create() >> replicate("run", replication=REPLICATION)
    return dag


def requesting(action: str, name: str) -> DAG:
    with DAG("requesting", schedule=None) as dag:
        RequestBackfillOperator(task_id="request", replication=REPLICATION, objects=name, action=action)
    return dag


def by_run(run: str, dag: str = "overlapping") -> Actor:
    return Actor("test", run=f"{dag}/{run}/run.objects.backfill/0")


def paths(shop: ReplicatedShop) -> JobPaths:
    return shop.hook.job_paths()


def stands(shop: ReplicatedShop, name: str) -> ReplicatedObject:
    return get_object(shop.hook.open_store(), REPLICATION, name)


def backfill(
    shop: ReplicatedShop, name: str, run: Callable[[JobSpec], JobResult], by: Actor, cancel: Callable[[], None]
) -> BackfillOutcome:
    return run_backfill(
        Runtime(shop.hook.open_store(), run=run, paths=paths(shop)),
        stands(shop, name).uid,
        by=by,
        cancel=cancel,
        read_progress=lambda spec: None,
        looks=0.1,
    )


def copied(shop: ReplicatedShop, name: str) -> None:
    """A job that stands in for Spark has copied it, as of what was captured."""
    one, captured = stands(shop, name), shop.status().replication.captured
    assert captured is not None
    report = BackfillReport(captured, captured, 10, one.schema, one.target)
    done = backfill(shop, name, lambda spec: JobResult(to_plain(report)), by_run("earlier", "before"), _nothing)
    assert done.report is not None


@dataclass
class Backfilling:
    """A backfill at work. `cancelled`: its job was told to end. `outcome`: what it came to, unless its job died."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    outcome: BackfillOutcome | None = None


@contextmanager
def backfilled_by(shop: ReplicatedShop, run: str, name: str) -> Iterator[Backfilling]:
    """That run's backfill of the object lasts as long as the context, or until it is cancelled."""
    begun, at_work = threading.Event(), Backfilling()

    def last(spec: JobSpec) -> JobResult:
        begun.set()
        at_work.cancelled.wait(WITHIN)
        raise JobDied(key=spec.kind, exit_code=-9, tail="it was cancelled")

    def work() -> None:
        with suppress(JobDied):
            at_work.outcome = backfill(shop, name, last, by_run(run), at_work.cancelled.set)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(WITHIN)
    try:
        yield at_work
    finally:
        at_work.cancelled.set()
        thread.join(WITHIN)


def _nothing() -> None:
    pass


def labels(outcome: Outcome, task_id: str) -> dict[str, str]:
    found = outcome.run.get_task_instances()
    return {str(one.rendered_map_index): str(one.state) for one in found if one.task_id == f"run.objects.{task_id}"}


def test_a_run_captures_and_applies_while_another_backfills_and_a_stop_reaches_that(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    copied(shop, "shop.visits")
    before = shop.status().replication.captured
    shop.change("CREATE TABLE shop.elsewhere (id int)")  # else the log of an idle server may stand where it stood
    with backfilled_by(shop, "long", "shop.orders") as long:
        beside = run_dag(overlapping())
        assert (beside.state, beside.task("run.capture")) == ("success", "success")
        assert beside.returned("run.prepare") == []
        assert set(beside.returned("run.apply")["objects"]) == {"shop.visits"}
        after = shop.status().replication.captured
        assert after is not None
        assert before is not None
        assert after > before
        assert stands(shop, "shop.visits").applied == after
        assert stands(shop, "shop.orders").state is ObjectState.ACTIVE
        asked = run_dag(requesting("stop", "shop.orders"))
        assert asked.returned("request")["objects"] == {"shop.orders": "stopped"}
        assert long.cancelled.wait(WITHIN)
    assert long.outcome is not None
    assert long.outcome.reason is not None
    assert stands(shop, "shop.orders").state is ObjectState.STOPPED


def test_one_run_begins_no_backfill_where_all_others_are_at_some(run_dag: RunDag, shop: ReplicatedShop) -> None:
    """Else all would copy a hundred tables for a day, and none would capture."""
    with backfilled_by(shop, "long", "shop.orders"):
        beside = run_dag(overlapping(runs=2))
    assert (beside.state, beside.task("run.capture")) == ("success", "success")
    assert beside.returned("run.prepare") == []
    assert stands(shop, "shop.visits").state is ObjectState.PENDING


def test_a_run_is_green_while_another_captures_and_red_while_a_stranger_reads_the_slot(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    for name in ("shop.orders", "shop.visits"):
        copied(shop, name)
    with reading(shop):
        stranger = run_dag(overlapping())
    assert (stranger.state, stranger.task("run.prepare"), stranger.task("run.capture")) == (
        "failed", "success", "failed",
    )  # fmt: skip
    shop.sql("DELETE FROM shop.visits")
    found: dict[str, Outcome] = {}

    def run(spec: JobSpec) -> JobResult:
        with reading(shop):
            found["beside"] = run_dag(overlapping())
        raise JobDied(key=spec.kind, exit_code=-9, tail="it only stood in")

    with pytest.raises(JobDied):
        capture(
            Runtime(shop.hook.open_store(), run=run, paths=paths(shop)),
            REPLICATION,
            source=open_source(source_address(CONN_ID)),
            by=by_run("capturing"),
        )
    assert (found["beside"].state, found["beside"].task("run.capture")) == ("success", "skipped")
    assert found["beside"].task("run.apply") == "success"
    assert shop.status().replication.state is ReplicationState.FAILED  # the capture that stood in has failed


@contextmanager
def reading(shop: ReplicatedShop) -> Iterator[None]:
    """The slot has a reader."""
    replication = shop.status().replication
    connection = psycopg2.connect(
        host="127.0.0.1",
        port=shop.server.port,
        user=USER,
        password=PASSWORD,
        dbname=shop.database,
        connection_factory=psycopg2.extras.LogicalReplicationConnection,
    )
    try:
        options = {"proto_version": "1", "publication_names": replication.publication}
        connection.cursor().start_replication(slot_name=replication.slot, options=options)
        yield
    finally:
        connection.close()


def test_a_name_that_is_not_there_stops_the_run_before_it_captures(run_dag: RunDag, shop: ReplicatedShop) -> None:
    for name in ("shop.orders", "shop.visits"):
        copied(shop, name)
    before = shop.status()
    with DAG("requests", schedule=None, max_active_runs=3) as dag:
        create() >> replicate("run", replication=REPLICATION, prepare={"backfill": "shop.misspelt"})
    asked = run_dag(dag)
    assert asked.state == "failed"
    steps = ("prepare", "capture", "apply", "finish")
    assert [asked.task(f"run.{step}") for step in steps] == ["failed", "upstream_failed", "success", "success"]
    after = shop.status()
    assert after.replication.captured == before.replication.captured
    assert [one.object.state for one in after.objects] == [one.object.state for one in before.objects]


def test_more_small_objects_than_airflow_maps_over_share_a_task(
    run_dag: RunDag, shop: ReplicatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")  # of two objects
    with DAG("prepares", schedule=None, max_active_runs=3) as dag:
        PrepareReplicationOperator(task_id="prepare", replication=REPLICATION)
    assert run_dag(dag).returned("prepare") == [["shop.orders", "shop.visits"]]
