"""`airflow tidemark db`: what an operator of a PostgreSQL store sees, and what a task sees before it was migrated."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk import RetryAction

from tests.postgresql import PASSWORD, PostgresServer
from tidemark.cli.store import check, migrate, prune
from tidemark.control.schema import stores
from tidemark.control.store import ControlStore
from tidemark.errors import (
    StoreBusy,
    StoreError,
    StoreNotMigrated,
    StoreOlderThanLake,
    StoreRefused,
    StoreTooNew,
    StoreUnreachable,
    StoreUrlInvalid,
)
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._base import TidemarkOperator
from tidemark.operators._history import drop_old_history
from tidemark.operators._retries import PERMANENT, set_retry_policy

pytestmark = pytest.mark.airflow
Refused = Callable[[Callable[[Namespace], None]], str]
ARGUMENTS = Namespace(conn_id="tidemark_default", output="json", verbose=False)


@pytest.fixture
def database(airflow_home: Path, postgresql: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The connection `tidemark_default` leads to this database, which is empty; the password has its own field."""
    name = postgresql.new_database()
    store = f"postgresql+psycopg://postgres@127.0.0.1:{postgresql.port}/{name}"
    connection = {"conn_type": "tidemark", "password": PASSWORD, "extra": {"control_store": store}}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
    return name


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    def run(command: Callable[[Namespace], None]) -> str:
        with pytest.raises(SystemExit) as ended:
            command(ARGUMENTS)
        assert isinstance(ended.value.code, str)  # printed to stderr, exit code 1
        assert PASSWORD not in ended.value.code + str(capsys.readouterr())
        return ended.value.code

    return run


@pytest.mark.usefixtures("database")
def test_an_operator_is_led_from_nothing_to_a_store_that_can_be_used(
    refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Run `airflow tidemark db migrate`" in refused(check)
    migrate(ARGUMENTS)
    assert "was migrated from an empty database" in capsys.readouterr().out
    migrate(ARGUMENTS)
    assert "was there before" in capsys.readouterr().out
    check(ARGUMENTS)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["store_id"] == TidemarkHook().open_store().store_id
    assert ":***@" in row["control_store"]


def test_a_store_of_a_newer_release_is_left_alone_and_named(
    database: str, postgresql: PostgresServer, refused: Refused
) -> None:
    ControlStore(postgresql.url(database)).migrate()
    postgresql.sql("UPDATE tidemark_revision SET version_num = '9999'", database)
    assert "Install that release" in refused(check)
    assert "Install that release" in refused(migrate)
    assert postgresql.sql("SELECT version_num FROM tidemark_revision", database) == [("9999",)]


def test_a_server_that_is_down_ends_the_command_soon(
    monkeypatch: pytest.MonkeyPatch, airflow_home: Path, refused: Refused
) -> None:
    connection = {"conn_type": "tidemark", "extra": {"control_store": "postgresql://ann@127.0.0.1:1/db"}}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
    assert "StoreUnreachable" in refused(check)


@pytest.mark.usefixtures("database")
def test_history_is_pruned_as_far_as_it_is_asked_and_a_typo_drops_nothing(
    refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    migrate(ARGUMENTS)
    capsys.readouterr()
    prune(Namespace(**vars(ARGUMENTS), keep="90d"))
    assert {row["dropped"] for row in json.loads(capsys.readouterr().out)} == {"0"}  # Airflow prints text
    for keep in ("90", "23h", "all"):
        assert "InvalidArgument" in refused(lambda given, keep=keep: prune(Namespace(**vars(given), keep=keep)))


@pytest.mark.usefixtures("database")
def test_a_task_drops_history_where_the_connection_says_so_and_never_fails_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = TidemarkOperator(task_id="any")
    drop_old_history(operator)  # nothing is said: the store is not even looked at
    connection = json.loads(os.environ["AIRFLOW_CONN_TIDEMARK_DEFAULT"])
    connection["extra"]["keep_history"] = "90d"
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
    operator = TidemarkOperator(task_id="another")
    drop_old_history(operator)  # not migrated yet: a warning
    store = operator.hook.open_store()
    store.migrate()
    drop_old_history(operator)
    claimed = store.read(lambda c: c.execute(sa.select(stores.c.pruned_at)).scalar_one())
    assert claimed is not None
    drop_old_history(operator)
    assert store.read(lambda c: c.execute(sa.select(stores.c.pruned_at)).scalar_one()) == claimed


@pytest.mark.usefixtures("database")
def test_tasks_refuse_a_store_that_was_not_migrated_and_do_not_migrate_it() -> None:
    store = TidemarkHook().open_store()
    for use in (store.read, store.write):
        with pytest.raises(StoreNotMigrated):
            use(lambda connection: None)
    assert store.revision() is None


@pytest.mark.parametrize(
    ("error", "action"),
    [
        (StoreUrlInvalid(url="u", problem="p"), RetryAction.FAIL),
        (StoreNotMigrated(url="u", found=None, needed="1"), RetryAction.FAIL),
        (StoreTooNew(url="u", found="2", needed="1"), RetryAction.FAIL),
        (StoreOlderThanLake(url="u", target="t", streams="s"), RetryAction.FAIL),
        (StoreUnreachable(url="u", problem="p"), RetryAction.DEFAULT),
        (StoreBusy(url="u", problem="p"), RetryAction.DEFAULT),
        (StoreRefused(url="u", problem="p"), RetryAction.DEFAULT),  # passwords are rotated
    ],
)
def test_what_only_a_person_can_mend_is_not_tried_again_and_what_may_pass_is(
    error: StoreError, action: RetryAction
) -> None:
    arguments: dict[str, Any] = {}
    set_retry_policy(arguments, hopeless=PERMANENT)
    assert arguments["retry_policy"].evaluate(error, 1, 3).action is action
