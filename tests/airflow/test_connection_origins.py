"""A connection of another type is refused, and each message says which connection and where a value came from."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

import pytest
from airflow.sdk import Connection, configuration
from airflow.sdk.bases.secrets_backend import BaseSecretsBackend
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse

from tests.unit.lake.delta_directories import born
from tidemark.errors import (
    ConnectionUnreadable,
    InvalidArgument,
    NotYetSupported,
    SparkMasterUnfit,
    StoreUnreachable,
    StoreUrlInvalid,
    TableNotFound,
)
from tidemark.hooks._submission import spark_connection
from tidemark.hooks.source_connection import source_address
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import Addressing, TableRef
from tidemark.replication.sources.postgresql.failures import connect_failure

pytestmark = pytest.mark.airflow

NO_SERVER = "postgresql://ann@127.0.0.1:1/db"


@pytest.fixture(autouse=True)
def _nothing_is_said(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDEMARK_LAKE_ROOT", "TIDEMARK_CONTROL_STORE", "AIRFLOW_CONN_TIDEMARK_DEFAULT"):
        monkeypatch.delenv(name, raising=False)


def say(
    monkeypatch: pytest.MonkeyPatch, conn_id: str = "mine", conn_type: str | None = "tidemark", **extra: str
) -> None:
    given = {"extra": extra} if conn_type is None else {"conn_type": conn_type, "extra": extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(given))


@pytest.mark.parametrize("conn_type", ["postgres", "spark", "tidemarks", None])
@pytest.mark.parametrize("conn_id", ["mine", "tidemark_default"])
def test_a_connection_of_another_type_is_refused(
    conn_id: str, conn_type: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    say(monkeypatch, conn_id, conn_type, lake_root=str(tmp_path))
    with pytest.raises(InvalidArgument, match=rf"conn_id='{conn_id}': the connection has .*, not 'tidemark'"):
        _ = TidemarkHook(conn_id).settings


def test_a_table_that_is_not_found_says_which_connection_named_the_lake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    born(tmp_path / "shop" / "orders")
    say(monkeypatch, lake_root=str(tmp_path))
    for look in (TidemarkHook("mine").table, TidemarkHook("mine").table_uri, TidemarkHook("mine").open_table):
        with pytest.raises(TableNotFound, match=r"from the connection 'mine'.*Did you mean shop.orders"):
            look("shop.odrers")


def test_a_table_that_is_not_found_says_which_variable_named_the_lake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    with pytest.raises(TableNotFound, match=rf"{tmp_path} .from the environment variable TIDEMARK_LAKE_ROOT."):
        TidemarkHook().table("shop.orders")
    monkeypatch.delenv("TIDEMARK_LAKE_ROOT")
    monkeypatch.setenv("AIRFLOW__TIDEMARK__LAKE_ROOT", str(tmp_path))
    with pytest.raises(TableNotFound, match=r"from the environment variable AIRFLOW__TIDEMARK__LAKE_ROOT"):
        TidemarkHook().table("shop.orders")


def test_a_default_is_named_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TableNotFound, match=r"the default: the connection 'tidemark_default' does not exist"):
        TidemarkHook().table("shop.orders")
    say(monkeypatch, control_store="sqlite:////tmp/x.db")
    with pytest.raises(TableNotFound, match=r"the default: the connection 'mine' does not set it"):
        TidemarkHook("mine").table("shop.orders")


class NotJson(ConnectionError, ValueError):
    """An answer of a gateway: `requests` has such errors, of both kinds."""


class FailingBackend(BaseSecretsBackend):
    """A vault that does not answer."""

    def get_connection(self, conn_id: str, team_name: str | None = None) -> Connection | None:
        raise ConnectionError("the vault is sealed")


class BackendBehindGateway(BaseSecretsBackend):
    """A vault whose gateway answers a page."""

    def get_connection(self, conn_id: str, team_name: str | None = None) -> Connection | None:
        raise NotJson("the vault is sealed")


class FailingApi:
    """The supervisor of a task, of which Airflow's API server is away, or has no connection."""

    def __init__(self, error: ErrorType) -> None:
        self.answer = ErrorResponse(error=error, detail={"message": "503"})

    def send(self, message: object) -> ErrorResponse:
        return self.answer


@pytest.mark.parametrize("backend", [FailingBackend, BackendBehindGateway])
def test_a_default_connection_that_cannot_be_read_is_no_missing_one(
    monkeypatch: pytest.MonkeyPatch, backend: type[BaseSecretsBackend]
) -> None:
    monkeypatch.setattr(configuration, "_secrets_backend_cache", {})  # backends are built once per process
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", f"{__name__}.{backend.__name__}")
    with pytest.raises(ConnectionUnreadable, match=rf"'tidemark_default'.*{backend.__name__} failed with .*is sealed"):
        _ = TidemarkHook().settings


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"conn_type": "tidemark", "password": "s3cr3t-pw"', InvalidArgument),
        ("tidemark://:s3cr3t-pw@/?control_store=postgresql://tide@pg/tide", ConnectionUnreadable),
    ],
)
def test_a_default_connection_that_does_not_parse_is_neither_missing_nor_shown(
    monkeypatch: pytest.MonkeyPatch, text: str, refusal: type[Exception]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", text)
    with pytest.raises(refusal, match=r"EnvironmentVariablesBackend") as refused:
        _ = TidemarkHook().settings
    assert "s3cr3t" not in "".join(traceback.format_exception(refused.value))
    monkeypatch.delenv("AIRFLOW_CONN_TIDEMARK_DEFAULT")
    assert str(TidemarkHook().settings.control_store).startswith("sqlite:")


def test_an_api_server_that_is_away_does_not_lead_to_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", FailingApi(ErrorType.API_SERVER_ERROR), raising=False)
    with pytest.raises(ConnectionUnreadable, match=r"ExecutionAPISecretsBackend failed with .*API_SERVER_ERROR"):
        _ = TidemarkHook().settings
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", FailingApi(ErrorType.CONNECTION_NOT_FOUND))
    assert str(TidemarkHook().settings.control_store).startswith("sqlite:")


def test_a_setting_that_does_not_parse_says_where_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, spark_conf="{")
    with pytest.raises(InvalidArgument, match=r"spark_conf=.*from the connection 'mine'"):
        _ = TidemarkHook("mine").settings
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", "nonsense")
    with pytest.raises(StoreUrlInvalid, match=r"from the environment variable TIDEMARK_CONTROL_STORE"):
        _ = TidemarkHook().settings


def test_a_store_that_is_away_is_told_of_at_each_retry_and_named_with_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from datetime import timedelta

    say(monkeypatch, control_store=NO_SERVER)
    with (
        caplog.at_level(logging.WARNING, "tidemark.control.store"),
        pytest.raises(StoreUnreachable, match=r"127.0.0.1:1/db .from the connection 'mine'. cannot be reached"),
    ):
        _ = TidemarkHook("mine").open_store(patience=timedelta(seconds=0.3)).store_id
    retries = [record.getMessage() for record in caplog.records if "is unreachable" in record.getMessage()]
    assert "from the connection 'mine'" in retries[0]
    assert "Connection refused" in retries[0]
    assert "Retry 1" in retries[0]


@pytest.mark.parametrize(
    ("master", "error", "problem"),
    [
        ("mesos://x", NotYetSupported, r"'mesos://x' \(from the environment variable TIDEMARK_SPARK_MASTER\)"),
        ("yarn", SparkMasterUnfit, r"'yarn' \(from the environment variable TIDEMARK_SPARK_MASTER\)"),
    ],
)
def test_a_master_that_cannot_be_says_where_it_was_given(
    master: str, error: type[Exception], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEMARK_SPARK_MASTER", master)
    with pytest.raises(error, match=problem):
        spark_connection(None, master)
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", "host": master}))
    with pytest.raises(error, match=r"\(from the connection 'cluster'\)"):
        spark_connection("cluster", master)


@pytest.mark.parametrize("conn_type", ["postgres", "spark_sql", "tidemark"])
def test_a_spark_connection_of_another_type_is_refused(conn_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": conn_type, "host": "local"}))
    with pytest.raises(InvalidArgument, match=f"spark_conn_id='cluster': the connection has the type '{conn_type}'"):
        spark_connection("cluster", "local")


@pytest.mark.parametrize(
    "said", ["password authentication failed for user", "connection refused", 'database "shop" does not exist']
)
def test_a_source_that_refuses_or_is_away_is_named_with_its_connection(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"conn_type": "postgres", "host": "db", "login": "ann", "password": "never-shown", "schema": "shop"}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps(given))
    failure = connect_failure(OSError(said), source_address("shop_db"))
    assert "postgresql://ann@db:5432/shop (from the connection 'shop_db')" in str(failure)
    assert "never-shown" not in str(failure)


def test_a_stream_whose_table_is_gone_says_where_its_name_was_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    born(tmp_path / "shop" / "orders")
    say(monkeypatch, lake_root=str(tmp_path))
    gone = TableRef("shop.odrers", f"file://{tmp_path}/shop/odrers", "id", Addressing.LAKE)
    with pytest.raises(TableNotFound, match=r"from the connection 'mine'.*Did you mean shop.orders"):
        TidemarkHook("mine").open_table(gone)
