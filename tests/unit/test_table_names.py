"""A table's name has one meaning: the client, operators and commands ask the same function."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tidemark.errors import InvalidArgument, SqlCompilationError
from tidemark.lake.tables import location_of, resolve
from tidemark.model.streams import Addressing
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import parse_statement, parse_write
from tidemark.sql.table_names import table_name
from tidemark.streams.driver.catalog_tables import is_known, kind_of
from tidemark.streams.planning.stream_sql.tables import created_table

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
    for lead in (resolve, location_of):
        with pytest.raises(InvalidArgument, match="only Spark's catalog knows its path"):
            lead("spark_catalog.shop.orders", str(tmp_path))


def test_the_origin_is_said_in_words() -> None:
    assert [one.words for one in (PATH, LAKE, CATALOG)] == ["path", "lake root", "catalog"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("`a.b`.orders", ("a.b", "orders")),
        ("shop.`or.ders`", ("shop", "or.ders")),
        ("`a/b`.orders", ("a/b", "orders")),
        ("shop.`or``ders`", ("shop", "or`ders")),
        ("spark_catalog.`my shop`.`or.ders`", ("spark_catalog", "my shop", "or.ders")),
    ],
)
def test_a_name_in_a_statement_leads_to_the_same_table_as_the_name_alone(text: str, parts: tuple[str, ...]) -> None:
    target = parse_write(f"INSERT INTO {text} SELECT * FROM s").target
    assert target is not None
    for name in (text, target.name):
        assert (table_name(name).parts, table_name(name).path) == (parts, None)
        assert table_name(name).only_in_catalog is (len(parts) > 2)


@pytest.mark.parametrize("stream", ["a.b", "a/b", "my stream", "a`b"])
def test_a_name_of_one_part_in_a_statement_is_read_as_a_streams_name(stream: str) -> None:
    """A name of a stream may have dots and slashes; a table of such a name is named by its path."""
    (mention,) = parse_statement(f"SELECT * FROM {quoted(stream)}").mentions
    assert (mention.parts, mention.name) == ((stream,), stream)
    assert table_name(quoted(stream)).parts == (stream,)
    assert table_name("delta.`/lake/a.b`").path == "/lake/a.b"


class _Session:
    """A Spark that knows every table, and keeps the names that it was asked for."""

    def __init__(self) -> None:
        self.catalog, self.asked = self, list[str]()

    def getTable(self, name: str) -> SimpleNamespace:
        self.asked.append(name)
        return SimpleNamespace(tableType="MANAGED")

    def tableExists(self, name: str) -> bool:
        return self.getTable(name) is not None


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("`my-shop`.`or ders`", "`my-shop`.`or ders`"),
        ("shop.orders", "shop.orders"),
        ("unity.`my-shop`.`or.ders`", "unity.`my-shop`.`or.ders`"),
    ],
)
def test_a_catalog_is_asked_for_a_statements_table_with_the_backticks_that_spark_needs(text: str, asked: str) -> None:
    session, target = _Session(), parse_write(f"INSERT INTO {text} SELECT * FROM s").target
    assert target is not None
    assert (kind_of(session, target.name), is_known(session, target.name)) == ("MANAGED", True)  # type: ignore[arg-type]
    assert session.asked == [asked, asked]


def test_a_table_that_is_created_by_a_name_of_four_parts_is_refused_with_the_place() -> None:
    with pytest.raises(SqlCompilationError, match="a name of more than three parts is not allowed here"):
        created_table("CREATE TABLE unity.eu.shop.orders AS SELECT * FROM s")
