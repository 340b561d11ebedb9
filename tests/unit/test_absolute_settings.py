"""Settings mean the same place in each process, whatever its working directory is, or they are refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tidemark.client import connect
from tidemark.errors import InvalidArgument, StoreUrlInvalid
from tidemark.hooks._origins import ConnectionExtra
from tidemark.hooks.settings import TidemarkSettings, settings_from


def _settings(home: Path, extra: dict[str, Any], executor: str = "LocalExecutor", **options: str) -> TidemarkSettings:
    return settings_from(extra, password=None, options=options, home=home, executor=executor)


@pytest.mark.parametrize("given", ["lake", "./lake", "..", "~nobody-has-this-name/lake", "s3:lake"])
def test_a_relative_lake_root_is_refused(tmp_path: Path, given: str) -> None:
    for extra, options in (({"lake_root": given}, {}), ({}, {"lake_root": given})):
        with pytest.raises(InvalidArgument, match=r"lake_root='.*an absolute path or a URI.*working directory"):
            _settings(tmp_path, extra, **options)


@pytest.mark.parametrize(
    ("given", "found"),
    [("/data/lake/", "file:///data/lake"), ("file:/data", "file:///data"), ("s3a://b/lake", "s3://b/lake")],
)
def test_an_absolute_lake_root_is_taken(tmp_path: Path, given: str, found: str) -> None:
    assert _settings(tmp_path, {"lake_root": given}).lake_root == found


def test_the_home_of_the_user_is_a_lake_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _settings(tmp_path, {"lake_root": "~/lake"}).lake_root == f"file://{tmp_path}/lake"
    assert _settings(tmp_path, {}).lake_root == f"file://{tmp_path}/lake"


def test_a_sqlite_store_at_a_relative_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreUrlInvalid, match=r"sqlite:///control.db.*working directory.*absolute"):
        _settings(tmp_path, {"control_store": "sqlite:///control.db"})
    assert _settings(tmp_path, {"control_store": "sqlite:////data/control.db"}).control_store.endswith("/control.db")


@pytest.mark.parametrize("home", ["airflow", "./airflow", "~nobody-has-this-name/airflow"])
def test_a_relative_home_of_airflow_is_refused(home: str) -> None:
    for extra in ({}, {"control_store": "sqlite:////data/control.db"}, {"lake_root": "/data/lake"}):
        with pytest.raises(InvalidArgument, match=r"AIRFLOW_HOME='.*an absolute path: .*working directory"):
            _settings(Path(home), extra)


def test_the_variable_of_a_home_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "airflow")
    assert ConnectionExtra("c", {}).origin("AIRFLOW_HOME", {}) == "from the environment variable AIRFLOW_HOME"


def test_the_defaults_are_below_the_home(tmp_path: Path) -> None:
    found = _settings(tmp_path, {})
    assert found.control_store == f"sqlite:///{tmp_path}/tidemark.db"
    assert (found.lake_root, found.jobs_root.parent) == (f"file://{tmp_path}/lake", tmp_path)


@pytest.mark.parametrize("executor", [".", "..", ".x.MyExecutor", "..MyExecutor", "a..b", "\0.x"])
def test_an_executor_that_cannot_be_imported_is_named(tmp_path: Path, executor: str) -> None:
    with pytest.raises(InvalidArgument, match="spreads tasks over hosts"):
        _settings(tmp_path, {}, executor)


def test_a_notebooks_relative_lake_root_stays_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_session() -> Any:
        raise AssertionError("no Spark is needed")

    monkeypatch.chdir(tmp_path)
    lake = connect(no_session, f"sqlite:///{tmp_path}/control.db", lake_root="lake")
    os.chdir("/")
    assert lake._context.place_of("shop.orders") == f"file://{tmp_path}/lake/shop/orders"
