"""Behind a Spark Connect server a stream on a view shows the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.airflow.connect_server import connect_server
from tests.tiers import nightly

pytestmark = [pytest.mark.spark, pytest.mark.e2e, nightly("a Connect server of its own")]


def test_a_view_is_resolved_and_read_without_a_jvm_of_its_own(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server:
        url = f"sc://localhost:{server.port}/;token={server.token}"
        command = [sys.executable, "-m", "tests.engine.views.behind_connect", url, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    seen = "2026-03-29 01:30:00"
    assert found["join"] == [
        ["DELETE", "True", "1", "1", "a", seen],
        ["INSERT", "False", "3", "three", "b", seen],
        ["INSERT", "True", "1", "1", "A", seen],
    ]
    assert found["groups"] == [["DELETE", "True", "2", "1"], ["INSERT", "True", "2", "2"]]
    assert found["lenient"] == [["INSERT", "False", "3", "None"]]
    assert found["rows"] == 2
    assert found["kept"] == [["1", "new"], ["2", "b"]]
    assert found["appended"] == [["INSERT", "False", "3", "three", "b", seen]]
    assert found["large"] == [
        ["DELETE", "False", "40000"],
        ["DELETE", "True", "500000"],
        ["INSERT", "True", "500000"],
    ]
