"""`make ui` listens on this machine alone, unless somebody says otherwise."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.ports import free_port

ROOT = Path(__file__).parents[2]
STAND_IN = """#!/usr/bin/env bash
echo "$AIRFLOW__API__HOST $*" >> "$STARTED"
case $1 in db) ;; *) sleep 0.3; exit 1 ;; esac
"""


@pytest.mark.parametrize(("asked", "listens"), [({}, "127.0.0.1"), ({"LISTEN": "0.0.0.0"}, "0.0.0.0")])
def test_make_ui_listens_where_it_is_told_and_else_on_this_machine(
    asked: dict[str, str], listens: str, tmp_path: Path
) -> None:
    stand_in, started = tmp_path / "bin" / "airflow", tmp_path / "started"
    stand_in.parent.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    around = {name: value for name, value in os.environ.items() if name != "LISTEN"}
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PORT": str(free_port()), "AIRFLOW_HOME": str(tmp_path), "STARTED": str(started)}
    subprocess.run([ROOT / ".ci/ui"], env={**around, **own, **asked}, capture_output=True, timeout=120, check=False)
    said = started.read_text().splitlines()
    assert {line.split()[0] for line in said} == {listens}
    parts = {line.split()[1]: line.split()[2:] for line in said}
    assert set(parts) == {"db", "api-server", "scheduler", "dag-processor", "triggerer"}
    assert parts["api-server"] == ["--host", listens, "--port", own["PORT"]]
    assert parts["scheduler"] == parts["triggerer"] == ["--skip-serve-logs"]  # those listen everywhere
