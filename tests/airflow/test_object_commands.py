"""`airflow tidemark objects …`: every kind in one list, the worst first, and one object by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import Said, run_airflow
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.monitored_replications import MonitoredReplications

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    root = tmp_path_factory.mktemp("objects")
    made = Monitored(root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    made.fill()
    MonitoredReplications(root / "replicated", made.url).fill()
    return made


@pytest.fixture
def run(airflow_home: Path, monitored: Monitored, use: Callable[[str], None]) -> Callable[..., Said]:
    use(monitored.url)
    return lambda *words: run_airflow("tidemark", "objects", *words)


def rows(said: Said) -> list[dict[str, Any]]:
    assert said.returncode == 0, said.stderr
    found: list[dict[str, Any]] = json.loads(said.stdout)
    return found


def test_a_list_has_every_kind_the_worst_first(run: Callable[..., Said]) -> None:
    found = rows(run("list", "--output", "json"))
    assert len(found) == 15
    assert {one["kind"] for one in found} == {"stream", "replication", "replicated_table"}
    severities = ["failed", "warning", "waiting", "ok"]
    order = [severities.index(one["severity"]) for one in found]
    assert order == sorted(order)
    assert (found[0]["name"], found[0]["state"], found[0]["owner"]) == ("shop/shop.payments", "failed", DAG)
    assert "it went away" in found[0]["problem"]
    of = {one["name"]: one for one in found}
    assert (of["shop"]["lag"], of["order_changes"]["lag"]) == ("48200000 bytes", "5 versions")
    assert (of["stock"]["state"], of["customers"]["severity"]) == ("stale", "warning")


def test_a_list_is_narrowed_by_kind_state_and_problems(run: Callable[..., Said]) -> None:
    def names(*words: str) -> list[str]:
        return [one["name"] for one in rows(run("list", *words, "--output", "json"))]

    assert names("--kind", "replication") == ["crm", "shop"]
    assert names("--kind", "stream", "--problems") == ["clicks", "returns", "stock", "customers"]
    assert names("--state", "up_to_date") == ["payments"]
    assert names("--state", "unsupported") == ["shop/shop.reviews"]
    assert names("--state", "warning", "--kind", "replicated_table") == ["shop/shop.reviews", "shop/shop.stock"]
    assert names("--state", "asleep") == []
    assert "order_changes" in run("list", "--output", "table").stdout


def test_one_object_is_shown_by_its_name_in_any_case(run: Callable[..., Said]) -> None:
    (found,) = rows(run("show", "replicated_table", "SHOP/shop.STOCK", "--output", "json"))
    assert (found["severity"], found["within"]) == ("warning", "shop")
    assert "it is to be backfilled" in found["problem"]
    (same,) = rows(run("show", "replicated_table", found["uid"], "--output", "json"))
    assert same["name"] == found["name"] == "shop/shop.stock"
    (stream,) = rows(run("show", "stream", "stock", "--output", "json"))
    assert (stream["state"], stream["owner"]) == ("stale", DAG)
    assert "property" in run("show", "stream", "stock").stdout


def test_an_object_that_is_not_there_is_an_error_in_a_line(run: Callable[..., Said]) -> None:
    failed = run("show", "stream", "nobody")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "no stream has that name or uid" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_kind_that_is_not_registered_is_refused(run: Callable[..., Said]) -> None:
    with pytest.raises(SystemExit) as refused:
        run("list", "--kind", "table")
    assert refused.value.code == 2
