"""A connection of another type is refused, and each message says which connection and where a value came from."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born
from tidemark.errors import (
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
