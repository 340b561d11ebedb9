"""A table's name has one meaning: the client, operators and commands ask the same function."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import InvalidArgument
from tidemark.lake.tables import place_of, resolve
from tidemark.model.streams import Addressing
from tidemark.sql.table_names import table_name

PATH, LAKE, CATALOG = Addressing.PATH, Addressing.LAKE, Addressing.CATALOG


@pytest.mark.parametrize(
    ("name", "parts", "path", "ways"),
    [
        ("orders", ("orders",), None, (LAKE, CATALOG)),
        (" shop.orders ", ("shop", "orders"), None, (LAKE, CATALOG)),
        ("`my shop`.`or``ders`", ("my shop", "or`ders"), None, (LAKE, CATALOG)),
        ("`a/b`.orders", ("a/b", "orders"), None, (LAKE, CATALOG)),
        ("spark_catalog.shop.orders", ("spark_catalog", "shop", "orders"), None, (CATALOG,)),
        ("unity.eu.shop.orders", ("unity", "eu", "shop", "orders"), None, (CATALOG,)),
        ("/lake/shop/orders", None, "/lake/shop/orders", (PATH,)),
        ("lake/orders", None, "lake/orders", (PATH,)),
        ("s3://bucket/a.b.c/orders", None, "s3://bucket/a.b.c/orders", (PATH,)),
        ("delta.`/lake/a``b`", None, "/lake/a`b", (PATH,)),
        ("DELTA.`s3://bucket/x`", None, "s3://bucket/x", (PATH,)),
    ],
)
def test_a_name_says_by_itself_how_it_may_lead_to_its_table(
    name: str, parts: tuple[str, ...] | None, path: str | None, ways: tuple[Addressing, ...]
) -> None:
    meant = table_name(name)
    assert (meant.path, meant.ways) == (path, ways)
    assert parts is None or meant.parts == parts


def test_a_name_with_a_catalog_never_leads_below_the_lake_root(tmp_path: Path) -> None:
    (tmp_path / "spark_catalog" / "shop" / "orders" / "_delta_log").mkdir(parents=True)
    for lead in (resolve, place_of):
        with pytest.raises(InvalidArgument, match="only Spark's catalog knows its path"):
            lead("spark_catalog.shop.orders", str(tmp_path))


def test_the_origin_is_said_in_words() -> None:
    assert [one.words for one in (PATH, LAKE, CATALOG)] == ["path", "lake root", "catalog"]
