"""A replication by an existing publication and slot is defined, prepared and dropped by tasks, and leaves both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tests.airflow.test_replication_operators import create, dag_of, prepare
from tests.postgresql import PostgresServer
from tidemark.errors import InvalidArgument
from tidemark.operators.replications import CreateReplicationOperator, DropReplicationOperator
from tidemark.replication.model.replication import ReplicationState
from tidemark.replication.worker.definitions import get_replication, list_replications

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
SLOT = "shop_reader"
THEIRS = {"publication": "theirs", "slot": SLOT}


@pytest.fixture
def shop(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ReplicatedShop]:
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=20)
    yield shop
    shop.sql(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{SLOT}'")


def _drop() -> DropReplicationOperator:
    return DropReplicationOperator(task_id="drop", replication=REPLICATION)


def test_what_is_missing_is_said_then_both_are_read_and_a_drop_keeps_them(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    failed = run_dag(dag_of(lambda: create(options=THEIRS), prepare))
    assert failed.task("prepare") == "failed"
    kept = get_replication(shop.hook.open_store(), REPLICATION)
    assert (kept.state, kept.publication, kept.slot) == (ReplicationState.NOT_STARTED, "theirs", SLOT)
    assert "Publication theirs does not exist: CREATE PUBLICATION" in str(kept.error)
    assert f"Replication slot {SLOT} does not exist: SELECT pg_create_logical_replication_slot" in str(kept.error)
    assert shop.in_source() == ([], [])

    shop.sql("CREATE PUBLICATION theirs FOR ALL TABLES WITH (publish_via_partition_root = true)")
    shop.sql(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
    both = shop.in_source()
    done = run_dag(dag_of(lambda: create(options=THEIRS), prepare))
    assert done.returned("prepare") == ["shop.customers", "shop.order_items", "shop.orders", "shop.visits"]
    assert run_dag(dag_of(_drop)).returned("drop") is True
    assert shop.in_source() == both


def test_a_slot_has_one_reader(run_dag: RunDag, shop: ReplicatedShop) -> None:
    run_dag(dag_of(lambda: create(options=THEIRS)))

    def second() -> CreateReplicationOperator:
        return CreateReplicationOperator(
            task_id="create", replication="second", source_conn_id=CONN_ID, target="second", options=THEIRS
        )

    assert run_dag(dag_of(second)).state == "failed"
    assert [one.name for one in list_replications(shop.hook.open_store())] == [REPLICATION]


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"slot": "Mixed Case"}, "lower-case letters, digits"), ({"publication": "ü" * 32}, "1 to 63 bytes")],
)
def test_a_name_that_the_source_cannot_have_is_refused_where_the_dag_is_parsed(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        create(options=options)
