"""The connection's Test says of control store, lake and Spark whether they can be worked with, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.hooks.tidemark import TidemarkHook

pytestmark = pytest.mark.airflow
Hook = Callable[..., TidemarkHook]


@pytest.fixture
def hook_with(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    def define(**extra: object) -> TidemarkHook:
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
        return TidemarkHook()

    return define


def test_all_is_well(hook_with: Hook, tmp_path: Path) -> None:
    well, said = hook_with(lake_root=str(tmp_path)).test_connection()
    assert well
    assert said == (
        f"Control store: reached. Lake file://{tmp_path}: written and read. "
        "Spark: Java and spark-submit are installed for local[1]; this test does not start them."
    )
    assert not list((tmp_path / "_tidemark" / "probe").iterdir())


def test_a_store_out_of_reach_is_named_and_the_rest_is_tested_all_the_same(hook_with: Hook, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/no/such/directory/control.db"
    well, said = hook_with(lake_root=str(tmp_path), control_store=store).test_connection()
    assert not well
    assert "Control store: NOT OK. " in said
    assert "written and read" in said


def test_a_lake_that_cannot_be_written_is_named(hook_with: Hook, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    well, said = hook_with(lake_root=str(tmp_path / "file")).test_connection()
    assert not well
    assert f"Lake file://{tmp_path}/file: NOT OK. " in said


def test_a_spark_that_is_not_there_is_named(hook_with: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    well, said = hook_with(lake_root=str(tmp_path)).test_connection()
    assert not well
    assert "Spark: NOT OK. Spark needs Java 17" in said


def test_settings_that_do_not_parse_are_the_answer(hook_with: Hook) -> None:
    well, said = hook_with(spark_conf="{").test_connection()
    assert not well
    assert "spark_conf" in said
