"""The estimate of costs: measured where it was measured, and a bounded sample."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.search.tables import METADATA, file_of
from tidemark.model.streams import Addressing, TableRef
from tidemark.search.model.paths import Search
from tidemark.search.planning.costs import PathSample, costs, sample_of
from tidemark.search.planning.defining import paths_added
from tidemark.search.planning.sql import parse_targets

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TABLE = TableRef("shop.orders", "file:///lake/shop/orders", "id-1", Addressing.LAKE)
FILES = {name: file_of(name, {"n": 1}, {"n": 9}) for name in ("a", "b")}


def storage(asked: str, search: Search | None) -> tuple[str, float]:
    """How the size of the paths is known, and the size."""
    paths, _ = paths_added("shop.orders", METADATA, (), 1, parse_targets(asked))
    samples = [PathSample(path, 1, 10, 10, 10) for path in paths if path.has_rows]
    found = costs("shop.orders", FILES, [FILES["a"]], samples, search, (), NOW)["costPositions"][1]
    return found["computationMethod"], found["costs"]["value"]


def built(on: str) -> Search:
    paths, next_id = paths_added("shop.orders", METADATA, (), 1, parse_targets(on))
    ids = tuple(path.id for path in paths if path.has_rows)
    return Search("u", TABLE, "file:///lake/s", paths, next_id, NOW, kept_version=3, kept_ids=ids, size=777)


@pytest.mark.parametrize("asked", ["EQUALITY(n)", "EQUALITY(id, n)", "EQUALITY(id), SUBSTRING(id)"])
def test_the_size_of_other_paths_than_the_built_ones_is_estimated(asked: str) -> None:
    assert storage(asked, built("EQUALITY(id)")) == storage(asked, None)
    assert storage(asked, None)[0] == "Estimated"


def test_the_size_of_the_built_paths_is_measured() -> None:
    search = built("EQUALITY(id, n), RANGE(n)")
    assert storage("EQUALITY(id, n)", search) == ("Measured", 777)
    assert storage("EQUALITY(id)", search)[0] == "Estimated"
    assert storage("EQUALITY(id, n)", replace(search, kept_ids=(1,)))[0] == "Estimated"  # one is not built yet
    assert storage("EQUALITY(id, n)", replace(search, kept_version=None))[0] == "Estimated"


def test_the_sample_is_one_file_of_a_hundred_and_sixteen_at_most() -> None:
    files = [file_of(str(at), {}, {}) for at in range(10_000)]
    assert [len(sample_of(files[:count])) for count in (0, 1, 100, 101, 1_600, 10_000)] == [0, 1, 1, 2, 16, 16]
