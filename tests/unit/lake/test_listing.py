"""Which tables a lake has, by its directories alone; where change streams' logs lie, and that only they are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born
from tidemark.lake.listing import table_names
from tidemark.lake.log_paths import logs_root, remove_log
from tidemark.lake.tables import resolve


def test_tables_of_schemas_and_of_the_root_are_found_and_each_name_leads_back(tmp_path: Path) -> None:
    places = ["shop/orders", "shop/of items", "web-log/visits.v1", "loose"]
    for place in places:
        born(tmp_path / place)
    (tmp_path / "shop" / "notes").mkdir()
    (tmp_path / "shop" / "readme.txt").write_text("x")
    (tmp_path / "readme.txt").write_text("x")
    for hidden in (
        "_tidemark/change_streams/1",
        ".trash/orders",
        "shop/_old",
        "loose/inner",
        "shop/orders__channel_history",
    ):
        born(tmp_path / hidden)

    names = table_names(str(tmp_path))

    assert names == ("`web-log`.`visits.v1`", "loose", "shop.`of items`", "shop.orders")
    assert {resolve(name, str(tmp_path))[0] for name in names} == {f"file://{tmp_path}/{place}" for place in places}


def test_a_search_table_is_none_of_the_tables_beside_its_own(tmp_path: Path) -> None:
    for place in ("loose", "loose__search", "shop/orders", "shop/orders__search", "shop/a__search", "shop__search/b"):
        born(tmp_path / place)
    assert table_names(str(tmp_path)) == ("loose", "shop.a__search", "shop.orders", "shop__search.b")


def test_a_lake_that_is_not_there_or_empty_has_no_tables(tmp_path: Path) -> None:
    assert table_names(str(tmp_path)) == ()
    assert table_names(str(tmp_path / "nowhere")) == ()


def test_a_log_is_removed_with_all_in_it_once_and_nothing_else(tmp_path: Path) -> None:
    mine, other = (f"{logs_root(str(tmp_path))}/{name}" for name in ("mine", "other"))
    for log in (mine, other):
        born(Path(log.removeprefix("file://")))
    for _ in range(2):
        remove_log(mine)
    assert not Path(mine.removeprefix("file://")).exists()
    assert Path(other.removeprefix("file://")).exists()


def test_what_is_no_log_of_a_change_stream_is_not_removed(tmp_path: Path) -> None:
    born(tmp_path / "orders")
    with pytest.raises(ValueError, match="is not in a directory change_streams"):
        remove_log(str(tmp_path / "orders"))
    assert (tmp_path / "orders").exists()
