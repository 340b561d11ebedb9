"""A search table that several stores have written in turn: the rows of a scan, by each of them."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tests.engine.search.world import SearchWorld, texts
from tidemark.client import connect
from tidemark.client.lake import Lake

pytestmark = pytest.mark.spark

BY_TAG, BY_N, BY_G = "array_contains(tags, 'odd117')", "n = 42", "g = 3"


def is_right(lake: Lake, world: SearchWorld) -> list[int]:
    """The numbers of files that are read."""
    for where in (BY_TAG, BY_N, BY_G):
        assert texts(lake.search("shop.orders", where)) == world.scan(where), where
    return [len(lake.explain_search("shop.orders", where).files) for where in (BY_TAG, BY_G)]


def test_stores_that_keep_a_search_table_in_turn_find_the_rows_of_a_scan(
    world: SearchWorld, client: Lake, migrated_file: Path, tmp_path: Path
) -> None:
    shutil.copy(migrated_file, tmp_path / "other.db")
    world.fill(3)
    with closing(connect(world.spark, f"sqlite:///{tmp_path}/other.db", lake_root=str(world.root))) as other:
        client.add_search_optimization("shop.orders", "EQUALITY(tags, g)")
        other.add_search_optimization("shop.orders", "EQUALITY(n, tags)")
        client.keep_search_path("shop.orders")
        assert is_right(client, world) == [1, 3]
        other.keep_search_path("shop.orders")
        assert is_right(client, world) == [3, 3]
        assert is_right(other, world) == [1, 3]
        world.fill(1, start=300)
        client.keep_search_path("shop.orders")
        assert is_right(client, world) == [1, 4]
        assert is_right(other, world) == [4, 4]


def test_a_store_put_back_finds_the_rows_of_a_scan(world: SearchWorld, client: Lake, tmp_path: Path) -> None:
    world.fill(3)
    client.add_search_optimization("shop.orders", "EQUALITY(tags, n)")
    client.keep_search_path("shop.orders")
    client.close()
    shutil.copy(tmp_path / "control.db", tmp_path / "backup.db")
    with closing(world.client()) as later:
        later.drop_search_optimization("shop.orders", "EQUALITY(n)")
        later.add_search_optimization("shop.orders", "EQUALITY(words)")
        later.keep_search_path("shop.orders")
    shutil.copy(tmp_path / "backup.db", tmp_path / "control.db")
    with closing(world.client()) as back:
        assert is_right(back, world) == [1, 3]
        back.add_search_optimization("shop.orders", "EQUALITY(g)")
        assert is_right(back, world) == [1, 3]
        back.keep_search_path("shop.orders")
        choice = back.explain_search("shop.orders", BY_N)
        assert any(step.why.startswith("EQUALITY(n)") for step in choice.steps)
        assert is_right(back, world) == [1, 3]
