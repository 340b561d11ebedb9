"""Clustered tables and search optimization on the overview and in lineage: what depends on their tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import Caller, another_app
from tests.airflow.monitored import DAG, Monitored
from tests.unit.search.tables import METADATA
from tidemark.clustering.model.tables import ClusteredTable
from tidemark.clustering.store import tables
from tidemark.model.streams import TableRef
from tidemark.search.planning.sql import parse_targets
from tidemark.search.store import searches
from tidemark.search.worker.definitions import add_search

pytestmark = pytest.mark.airflow

OVERVIEW, LINEAGE = "/api/v1/overview", "/api/v1/lineage"
BY = f"{DAG}/scheduled__1/keep/-1"
ALONE = TableRef("shop.alone", "file:///lake/shop/alone", "id of alone")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    """`shop.order_changes` is clustered and has search optimization, and both fail; so does a table without a tie."""
    root = tmp_path_factory.mktemp("kept")
    made = Monitored(root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    made.fill()
    source = made.tables["order_changes"]
    orders = TableRef("shop.order_changes", source.uri, source.table_id)
    for number, table in enumerate((orders, ALONE)):
        kept = ClusteredTable(f"clustered-{number}", table, ("id",), made.now)
        made.store.write(lambda c, kept=kept: tables.register_table(c, kept, by=BY))
        made.store.write(lambda c, kept=kept: tables.note_problem(c, kept, problem="it broke", at=made.now, by=BY))
        search = add_search(made.store, table, METADATA, parse_targets("EQUALITY(id)"), by=BY)
        made.store.write(lambda c, one=search: searches.note_problem(c, one, problem="it broke", at=made.now, by=BY))
    return made


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Monitored, use: Callable[[str], None]) -> Caller:
    use(world.url)
    return Caller(another_app())


def of_kept_tables(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    kinds = ("clustered_table", "search_optimization")
    return {(one["kind"], one["name"]): one for one in rows if one["kind"] in kinds}


def needs(ask: Caller) -> dict[tuple[str, str], dict[str, Any]]:
    """Those of the kept tables once lineage has been read in the background."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = ask(OVERVIEW).json()["needs"]
        if any(one["dependents"] is not None for one in found):
            return of_kept_tables(found)
        time.sleep(0.1)
    raise AssertionError("lineage has not been read")


def test_what_depends_on_a_kept_table_is_what_depends_on_the_table(ask: Caller) -> None:
    """The stream on it, and the two targets of the stream."""
    counts = {
        (kind, name): count
        for name, count in (("shop.order_changes", 3), ("shop.alone", 0))
        for kind in ("clustered_table", "search_optimization")
    }
    found = needs(ask)
    assert {key: one["dependents"] for key, one in found.items()} == counts
    typed = json.loads(run_airflow("tidemark", "overview", "--output", "json").stdout)
    assert {key: int(one["dependents"]) for key, one in of_kept_tables(typed).items()} == counts


def test_the_lineage_of_a_kept_table_is_around_the_table(ask: Caller) -> None:
    for (_, name), one in needs(ask).items():
        told = ask(LINEAGE, object=one["lineage"]["object"], depth=1).json()
        centre = next(node for node in told["nodes"] if node["id"] == told["centre"])
        assert (centre["kind"], centre["name"]) == ("table", name)
        assert [node["kind"] for node in told["nodes"] if node is not centre] == (
            [] if name == "shop.alone" else ["stream"]
        )
    kinds = {node["kind"] for node in ask(LINEAGE).json()["nodes"]}
    assert kinds == {"stream", "table"}
    typed = run_airflow("tidemark", "objects", "lineage", "clustered_table", "SHOP.alone", "--output", "json")
    assert [node["name"] for node in json.loads(typed.stdout)[0]["nodes"]] == ["shop.alone"]
