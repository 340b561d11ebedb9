"""`airflow tidemark results …`: the answers that queries may reuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import run_airflow
from tests.guarantees.killed_keeper import main as keep_one
from tidemark.control.store import ControlStore
from tidemark.results.store.cached_results import live

pytestmark = pytest.mark.airflow


def test_answers_are_listed_and_cleared(
    airflow_home: Path, tmp_path: Path, sqlite_store: str, use: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(sqlite_store)
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    keep_one(sqlite_store, f"file://{tmp_path}/lake/_tidemark")
    store = ControlStore(sqlite_store)
    everlasting = "UPDATE tidemark_cached_result SET expires_at = '9999-01-01 00:00:00.000000'"
    store.write(lambda connection: connection.exec_driver_sql(everlasting))

    def said(*words: str) -> list[dict[str, Any]]:
        answer = run_airflow("tidemark", "results", *words, "--output", "json")
        assert answer.returncode == 0, answer.stderr
        rows: list[dict[str, Any]] = json.loads(answer.stdout)
        return rows

    (row,) = said("list")
    assert (row["query"], row["rows"], row["tables"]) == ("SELECT 1 AS n", "1", "")
    assert said("list", "--table", "shop.orders") == []
    assert [one["done"] for one in said("clear", "--dry-run")] == ["False"]
    assert len(store.read(live)) == 1
    assert [one["done"] for one in said("clear")] == ["True"]
    assert store.read(live) == ()
    assert said("clear") == []
