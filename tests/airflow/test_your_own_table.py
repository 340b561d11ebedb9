"""The tutorial's Python blocks and its DAG run in order, and say what the page shows.

Installation and commands are followed by tests/deployment/test_your_own_table.py.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.own_table import PAGE, blocks_of_the_page
from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize("variable", ["AIRFLOW_CONN_TIDEMARK_DEFAULT", "TIDEMARK_LAKE_ROOT"])
def test_a_variable_of_the_page_names_the_lake_root(
    variable: str, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEMARK_LAKE_ROOT")
    shown = dict(
        shlex.split(block.code)[1].split("=", 1) for block in blocks_of_the_page(tmp_path) if block.names_the_lake_root
    )
    monkeypatch.setenv(variable, shown[variable])
    assert TidemarkHook().settings.lake_root == f"file://{tmp_path}"


@pytest.mark.spark
def test_the_dag_of_the_page_keeps_a_mirror_with_each_change_once(
    run_dag: Callable[..., Outcome],
    lake: Lake,
    warm_spark: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setattr("tidemark.testing.local_spark", lambda: lake.spark)
    caplog.set_level(logging.INFO)
    names: dict[str, Any] = {}
    runs = 0
    for block in blocks_of_the_page(tmp_path / "lake"):
        said = io.StringIO()
        caplog.clear()
        if block.language == "python":
            with contextlib.redirect_stdout(said):
                exec(compile(block.code, str(PAGE), "exec"), names)
        elif block.runs_the_dag:
            assert run_dag(names["dag"]).state == "success"
            runs += 1
        else:
            continue
        told = said.getvalue() + caplog.text + capfd.readouterr().out  # an operator's own log goes to the output
        assert block.missing(told) == []
    assert runs == 3
