"""Reads of views beside `lake.sql`: no cached answer, and in writes of tasks the kept rows of dynamic tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tests.guarantees.view_world import ViewWorld
from tidemark.errors import KeptViewNotReady, QueryNotReusable, StatementRefused
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.worker.reads_of_writes import materialized_views_among, over_dynamic_tables
from tidemark.materialized.worker.views import drop_view, find_views
from tidemark.model.statements import TransactionKey
from tidemark.results.model.answers import DEFAULT_RULES, TIME_ZONE, Miss, Why
from tidemark.results.planning.queries import Query, read_query
from tidemark.results.worker.asking import Asked, ask
from tidemark.results.worker.cache import ResultCache
from tidemark.results.worker.queries import answer_query
from tidemark.sql.statements import parse_statement
from tidemark.streams.worker.opening import open_table


@pytest.fixture
def world(tmp_path: Path, task_store: str) -> Iterator[ViewWorld]:
    """The dynamic table `t` and the materialized view `m`, both refreshed."""
    made = ViewWorld(tmp_path, task_store)
    made.view("t", "source")
    made.view("m", "source", kind=KeptKind.MATERIALIZED_VIEW)
    made.source.append()
    made.refresh("t")
    made.refresh("m")
    yield made
    made.store.close()


def asked(world: ViewWorld, text: str) -> Asked | Miss:
    """The query, where each view's name also leads to its kept table."""
    query = read_query(text)
    assert isinstance(query, Query)
    return ask(
        query,
        settings={TIME_ZONE: "UTC"},
        locate=lambda name: world.kept[name.lower()].uri,
        options={},
        rules=DEFAULT_RULES,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        streams=frozenset(),
        views=partial(find_views, world.store),
    )


def rows_in_a_write(world: ViewWorld, text: str) -> str:
    return over_dynamic_tables(world.store, open_table, parse_statement(text), ["S"])


def test_no_answer_over_a_view_is_reused_until_the_view_is_dropped(world: ViewWorld) -> None:
    for text in ("SELECT * FROM t", "SELECT count(*) FROM M", "SELECT a.id FROM t a JOIN m b ON a.id = b.id"):
        found = asked(world, text)
        assert isinstance(found, Miss)
        assert (found.why, found.stores, "is a view of the lake" in found.text) == (Why.VIEW, False, True)
    drop_view(world.store, "m", by="ann")
    assert isinstance(asked(world, "SELECT count(*) FROM M"), Asked)  # its kept table is a table like others now


def test_a_task_with_a_query_over_a_view_is_refused_before_a_job(world: ViewWorld, tmp_path: Path) -> None:
    before = len(world.drivers)
    with pytest.raises(QueryNotReusable, match="m is a view of the lake"):
        answer_query(
            ResultCache(world.store, str(tmp_path)),
            "SELECT count(*) FROM m",
            settings={TIME_ZONE: "UTC"},
            locate=lambda name: world.kept[name].uri,
            views=partial(find_views, world.store),
            runtime=lambda: world.runtime,
            key=TransactionKey("dag", "run", "task"),
        )
    assert len(world.drivers) == before


def test_a_write_has_the_kept_rows_of_a_dynamic_table_in_place_of_its_name(world: ViewWorld) -> None:
    text = rows_in_a_write(world, "INSERT INTO o SELECT T.id FROM s JOIN T ON s.id = T.id")
    assert text.startswith("INSERT INTO o SELECT T.id FROM s JOIN (SELECT ")
    assert f"FROM delta.`{world.kept['t'].uri}`" in text
    assert text.endswith(") AS `T` ON s.id = T.id")
    assert rows_in_a_write(world, "INSERT INTO o SELECT id FROM s") == "INSERT INTO o SELECT id FROM s"
    assert materialized_views_among(world.store, ["M", "t", "s"]) == ("M",)


def test_a_write_reads_no_materialized_view_and_no_table_before_its_first_refresh(world: ViewWorld) -> None:
    with pytest.raises(StatementRefused, match="cannot read the materialized view M"):
        rows_in_a_write(world, "INSERT INTO o SELECT s.id FROM s JOIN M USING (id)")
    world.view("late", "source")
    with pytest.raises(KeptViewNotReady):
        rows_in_a_write(world, "MERGE INTO o USING late ON o.id = late.id WHEN MATCHED THEN DELETE")
