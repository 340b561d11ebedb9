"""With no connection everything has a working default; with one, it says where things are."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from tidemark.errors import InvalidArgument, StoreUrlInvalid
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.jobs import JobResult

pytestmark = pytest.mark.airflow


@pytest.fixture
def connection(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def define(**fields: Any) -> TidemarkHook:
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", **fields}))
        return TidemarkHook()

    return define


def test_without_a_connection_state_and_lake_lie_under_airflows_home(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEMARK_LAKE_ROOT")
    monkeypatch.delenv("TIDEMARK_SPARK_MASTER")
    settings = TidemarkHook().settings
    assert settings.control_store == f"sqlite:///{airflow_home}/tidemark.db"
    assert settings.lake_root == f"file://{airflow_home}/lake"
    assert settings.spark_conn_id is None
    assert settings.spark_master == "local[*]"


def test_without_a_connection_the_store_can_be_used(airflow_home: Path) -> None:
    assert TidemarkHook().test_connection()[0]
    assert (airflow_home / "tidemark.db").exists()


def test_the_connection_wins_over_the_environment(connection: Any) -> None:
    extra = {"lake_root": "/data/the lake", "spark_conf": '{"spark.a": true}', "full_listing_seconds": "600"}
    settings = connection(extra=extra).settings
    assert settings.lake_root == "file:///data/the lake"
    assert settings.spark_conf == {"spark.a": "true"}
    assert settings.full_listing_seconds == 600


@pytest.mark.parametrize(("given", "hours"), [(None, 6), ("12", 12), (23, 23)])
def test_a_job_stops_itself_after_the_hours_of_the_connection(connection: Any, given: object, hours: int) -> None:
    hook = connection(extra={} if given is None else {"job_deadline_hours": given})
    runtime = hook.runtime(lambda spec: JobResult())
    assert abs(runtime.deadline() - runtime.store.clock() - timedelta(hours=hours)) < timedelta(minutes=1)


@pytest.mark.parametrize("given", ["0", "24", "six", "1.5", "-1"])
def test_hours_that_a_job_cannot_have_are_refused_by_name(connection: Any, given: str) -> None:
    with pytest.raises(InvalidArgument, match="job_deadline_hours"):
        _ = connection(extra={"job_deadline_hours": given}).settings


@pytest.mark.parametrize("given", ["0", "3601", "soon"])
def test_seconds_that_a_start_cannot_have_are_refused_by_name(connection: Any, given: str) -> None:
    assert connection(extra={"spark_start_seconds": "600"}).settings.spark_start == timedelta(minutes=10)
    with pytest.raises(InvalidArgument, match="spark_start_seconds"):
        _ = connection(extra={"spark_start_seconds": given}).settings


def test_the_password_goes_into_the_store_url_and_is_never_printed(connection: Any) -> None:
    hook = connection(password="p@ss", extra={"control_store": "postgresql+psycopg://u@h/db"})
    assert hook.settings.control_store == "postgresql+psycopg://u:p%40ss@h/db"
    assert "p%40ss" not in repr(hook.settings)


def test_storage_options_keep_the_types_that_json_gives_them(connection: Any) -> None:
    given = {"anon": False, "client_kwargs": {"region_name": "eu-1"}, "max_concurrency": 4}
    assert connection(extra={"storage_options": given}).settings.storage_options == given


def test_a_setting_that_is_not_json_is_named_and_not_shown(connection: Any) -> None:
    with pytest.raises(InvalidArgument, match="storage_options") as refused:
        _ = connection(extra={"storage_options": "{secret"}).settings
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("extra", ['{"lake_root": "/lake"', '["/lake"]', "lake_root=/lake", "7"])
def test_an_extra_that_is_no_json_object_is_refused_and_not_shown(connection: Any, extra: str) -> None:
    hook = connection(extra=extra)
    with pytest.raises(InvalidArgument, match=r"extra='\(not shown\)': the extra of the connection 'tidemark_default'"):
        _ = hook.settings
    ok, said = hook.test_connection()
    assert (ok, "/lake" in said) == (False, False)


@pytest.mark.parametrize("fields", [{}, {"extra": ""}, {"extra": " "}, {"extra": None}, {"extra": {}}, {"extra": "{}"}])
def test_an_empty_extra_leaves_the_defaults(connection: Any, fields: dict[str, Any]) -> None:
    assert connection(**fields).settings.spark_mode is None


def test_an_extra_in_an_address_is_read(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_TIDEMARK_DEFAULT", "tidemark:///?__extra__=%7B%22lake_root%22%3A%20%22%2Flake%22%7D"
    )
    assert TidemarkHook().settings.lake_root == "file:///lake"


def test_an_extra_that_is_no_setting_is_warned_of_once_with_the_one_that_is_meant(
    connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from tidemark.provider_info import get_provider_info

    info: Any = get_provider_info()
    for _ in range(2):
        _ = connection(extra={"lake_rot": "/lake"}).settings
    _ = connection(extra=dict.fromkeys(info["connection-types"][0]["conn-fields"])).settings
    said = [record.getMessage() for record in caplog.records if "is no setting" in record.getMessage()]
    assert said == [
        "The extra 'lake_rot' of the connection 'tidemark_default' is no setting of Tidemark, and is ignored."
        " Did you mean 'lake_root'?"
    ]


def test_another_connection_that_does_not_exist_is_an_error(airflow_home: Path) -> None:
    with pytest.raises(AirflowNotFoundException, match="elsewhere"):
        _ = TidemarkHook("elsewhere").settings


@pytest.mark.parametrize(
    "executor",
    [
        "CeleryExecutor",
        "KubernetesExecutor",
        "LocalExecutor,CeleryExecutor",
        "LocalExecutor;team=CeleryExecutor",
        "local:CeleryExecutor",
        "airflow.providers.edge3.executors.EdgeExecutor",
        "airflow.providers.celery.executors.celery_executor.CeleryExecutor",
        "nowhere.at.all.LocalExecutor",
        "airflow.executors.base_executor.BaseExecutor",  # a class that does not say that it is local
    ],
)
def test_an_embedded_store_is_refused_where_tasks_are_spread_over_hosts(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    with pytest.raises(InvalidArgument, match="PostgreSQL") as refused:
        _ = TidemarkHook().settings
    assert "Executor spreads tasks over hosts" in str(refused.value)
    ok, said = TidemarkHook().test_connection()
    assert (ok, "PostgreSQL" in said) == (False, True)


@pytest.mark.parametrize(
    "executor",
    [
        "LocalExecutor",
        "airflow.executors.local_executor.LocalExecutor",
        "mine:LocalExecutor",
        "LocalExecutor;team=LocalExecutor",
        "tests.airflow.test_settings.OnThisHost",
    ],
)
def test_an_embedded_store_is_taken_where_tasks_stay_on_one_host(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    assert TidemarkHook().settings.control_store.startswith("sqlite:///")


def test_a_shared_store_is_taken_with_every_executor(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor,CeleryExecutor")
    assert connection(extra={"control_store": "postgresql://u@h/db"}).settings.control_store.startswith("postgresql+")


class OnThisHost:
    """An executor of the user's own."""

    is_local = True


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@h:port/db", "mysql://u:s3cret@h/db", "postgres:s3cret"])
def test_a_bad_store_url_is_told_without_its_password(connection: Any, url: str) -> None:
    hook = connection(extra={"control_store": url})
    with pytest.raises(StoreUrlInvalid) as refused:
        _ = hook.settings
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in hook.test_connection()[1]


def test_spark_that_brings_delta_gets_no_packages(connection: Any) -> None:
    assert connection(extra={"spark_packages": "-"}).settings.spark_packages is None


def test_history_is_kept_for_ever_unless_the_connection_says_for_how_long(connection: Any) -> None:
    assert connection(extra={}).settings.keep_history is None
    assert connection(extra={"keep_history": "90d"}).settings.keep_history == timedelta(days=90)
    with pytest.raises(InvalidArgument, match="keep_history"):
        _ = connection(extra={"keep_history": "90"}).settings
