"""A table that is not found says where its name was looked for, and which names there are like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born
from tidemark.errors import TableNotFound
from tidemark.lake.tables import resolve, table_ref
from tidemark.sql.statements import parse_statement


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    for name in (
        "shop/orders",
        "shop/order_lines",
        "shop/customers",
        "flights",
        "hr/my table",
        "Depot/Items",
        "v1.visits",
    ):
        born(root / name)
    (root / "shop" / "ordes").mkdir()  # no table
    (root / "_tidemark" / "shop").mkdir(parents=True)
    (root / "notes.txt").touch()
    return root


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("shop.odrers", "shop.orders"),
        ("shop.ORDERS", "shop.orders"),
        ("shpo.orders", "shop.orders"),
        ("flihgts", "flights"),
        ("orders", "shop.orders"),
        ("hr.my_table", "hr.`my table`"),
        ("depot.items", "Depot.Items"),
        ("shop.`customer`", "shop.customers"),
    ],
)
def test_names_that_are_like_it_are_shown(lake: Path, name: str, meant: str) -> None:
    with pytest.raises(TableNotFound) as missing:
        resolve(name, str(lake), origin="from the connection 'c'")

    assert f"Did you mean {meant}" in str(missing.value)
    assert f"{name!r} was looked for below the lake root file://{lake} (from the connection 'c')" in str(missing.value)


@pytest.mark.parametrize("name", ["`v1.visit`", "v1.visits", "v1_visits"])
def test_a_table_of_one_part_with_a_dot_is_shown_by_its_path_which_statements_read(lake: Path, name: str) -> None:
    with pytest.raises(TableNotFound) as missing:
        resolve(name, str(lake))

    shown = str(missing.value).partition("Did you mean ")[2].partition("?")[0]
    assert shown == f"delta.`{lake}/v1.visits`"
    parsed = parse_statement(f"INSERT INTO shop.orders SELECT * FROM {shown}")
    assert [table_ref(one, str(lake)).path for one in parsed.names if one != "shop.orders"] == [
        f"file://{lake}/v1.visits"
    ]


@pytest.mark.parametrize("name", ["shop.zebra", "zebra.stripes", "notes.txt", "`..`", "shop"])
def test_where_no_name_is_like_it_none_is_shown(lake: Path, name: str) -> None:
    with pytest.raises(TableNotFound, match=r"no similar name. Check the name or the lake root") as missing:
        table_ref(name, str(lake))

    assert "Did you mean" not in str(missing.value)


@pytest.mark.parametrize("there", [False, True])
def test_a_lake_root_without_tables_is_said(tmp_path: Path, there: bool) -> None:
    root = tmp_path if there else tmp_path / "nowhere"
    with pytest.raises(TableNotFound, match=r"which holds no tables. Check the lake root"):
        resolve("shop.orders", str(root), origin="the default")


def test_a_path_is_named_as_it_is(lake: Path) -> None:
    with pytest.raises(TableNotFound, match=rf"No table exists at file://{lake}/shop/odrers"):
        table_ref(f"{lake}/shop/odrers", "/elsewhere")
