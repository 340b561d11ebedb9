"""Searches: the rows of a scan, from the files that can hold them."""

from __future__ import annotations

import pytest

from tests.engine.search.world import SearchWorld, texts
from tidemark.client.lake import Lake

pytestmark = pytest.mark.spark

ALL = "EQUALITY(id, n, g, d, m, t, tags, s.f), SUBSTRING(words), RANGE(n), ORDER(n)"


@pytest.fixture
def kept(world: SearchWorld, client: Lake) -> SearchWorld:
    world.fill(12)
    client.sql(f"ALTER TABLE shop.orders ADD SEARCH OPTIMIZATION ON {ALL}")
    client.keep_search_path("shop.orders")
    return world


SELECTIVE = [
    ("id = 'key-000517'", 1),
    ("id IN ('key-000017', 'key-001117', 'none', NULL)", 2),
    ("n = 42", 1),
    ("42 = n", 1),
    ("m = 25.25", 1),
    ("m = -1", 0),
    ("t = TIMESTAMP'2026-02-02 02:40:07.000007'", 1),
    ("array_contains(tags, 'odd333')", 1),
    ("arrays_overlap(tags, array('odd5', 'odd1105', 'x'))", 2),
    ("s.f = 'f777'", 1),
    ("id = 'key-000001' OR s.f = 'f1100'", 2),
    ("id = 'key-000001' AND s.f = 'f1100'", 0),
    ("id = 'key-000001' AND length(words) > 3", 1),
    ("words LIKE '%c4ca4238a0b9%'", 1),
    ("contains(words, 'c4ca4238')", 1),
    ("words LIKE '%no such text%'", 0),
    ("n > 1150", 1),
    ("n BETWEEN 90 AND 110", 2),
    ("n < 0", 0),
    ("id LIKE 'key-0005%'", 1),
]


@pytest.mark.parametrize(("where", "files"), SELECTIVE)
def test_a_search_has_the_rows_of_a_scan_from_few_files(
    kept: SearchWorld, client: Lake, where: str, files: int
) -> None:
    choice = client.explain_search("shop.orders", where)
    assert (len(choice.files), choice.total) == (files, 12), choice.steps
    expected = kept.scan(where)
    assert texts(client.table("shop.orders").where(where)) == expected
    assert texts(client.sql(f"SELECT * FROM shop.orders WHERE {where}")) == expected
    assert (
        sorted(map(repr, (row.asDict(recursive=True) for row in client.search("shop.orders", where).collect())))
        == expected
    )
