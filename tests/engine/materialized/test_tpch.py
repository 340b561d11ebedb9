"""Queries of TPC-H as materialized views, under refreshes by orders that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.kept import Kept, same
from tests.engine.materialized.tpch import Tpch
from tests.tiers import some
from tests.unit.planning.tpch_queries import Q1, Q3, Q5, Q6, Q10, Q12, Q14
from tidemark.jobs.workspace import Workspace
from tidemark.materialized.driver.job_resolve_query import resolve_query_in
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import KeptTable, ResolveRequest
from tidemark.materialized.model.shapes import Shape
from tidemark.model.statements import RefreshHow

pytestmark = pytest.mark.spark

QUERIES = {"Q1": Q1, "Q3": Q3, "Q5": Q5, "Q6": Q6, "Q10": Q10, "Q12": Q12, "Q14": Q14}


@pytest.fixture(scope="module", params=some([0.01, 0.1], {0.01}, "600,000 items"))
def tpch(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tpch:
    """The tables of a scale, after 0.5 % of the orders came and as many went."""
    found = Tpch(spark, tmp_path_factory.mktemp("tpch"), request.param, held=0.01)
    found.come(0.005)
    found.go(0.005)
    return found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake").as_uri(), "test") as room:
        yield room


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_of_tpch_is_its_query_after_orders_have_come_and_gone(
    name: str, spark: SparkSession, tpch: Tpch, workspace: Workspace, tmp_path: Path
) -> None:
    text = QUERIES[name]
    request = ResolveRequest(
        name=name,
        text=text,
        kind=KeptKind.MATERIALIZED_VIEW,
        tables={table.name: table.ref.path for table in tpch.tables if table.name in text},
        kept=KeptTable(name, str(tmp_path / name)),
    )
    kept = Kept(spark, workspace, tpch.tables, text, resolve_query_in(spark, request))
    assert kept.shape.shape is Shape.SUMS
    first, last = tpch.before, tpch.versions()
    kept.refresh(kept.window(first, first, initial=True), RefreshHow.WHOLE)
    assert same(kept.fresh(kept.window(first, last)), kept.answer(last))
    kept.refresh(kept.window(first, last), RefreshHow.CHANGES)
    assert same(kept.rows(), kept.answer(last))
