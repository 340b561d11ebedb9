"""Transformations of COPY INTO as Spark SQL. Their values are proved in tests/engine/pipes."""

from __future__ import annotations

import pytest

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.planning.transforms import Over, highest_position, select_items


def sql(item: str, over: Over = Over.FIELDS) -> str:
    (found,) = select_items(item, None, over)
    return found.sql


@pytest.mark.parametrize(
    ("item", "over", "expected"),
    [
        ("$1", Over.FIELDS, "`_1`"),
        ("t.$12", Over.FIELDS, "`_12`"),
        ("metadata$filename", Over.FIELDS, "`METADATA$FILENAME`"),
        ("$1::NUMBER(10, 2) AS price", Over.FIELDS, "TRY_CAST(`_1` AS DECIMAL(10, 2))"),
        ("$1::INT", Over.FIELDS, "TRY_CAST(`_1` AS DECIMAL(38, 0))"),
        ("$1::VARCHAR(3)", Over.FIELDS, "LEFT(TRY_CAST(`_1` AS STRING), 3)"),
        ("TO_DATE($1, 'DD.MM.YYYY')", Over.FIELDS, "TRY_TO_DATE(`_1`, 'dd.MM.yyyy')"),
        ("($1 = 'a' OR $2 = 'b') AND $3 IS NULL", Over.FIELDS, "(`_1` = 'a' OR `_2` = 'b') AND `_3` IS NULL"),
        ("$1", Over.VARIANT, "`_1`"),
        ("$1:a.b[0]", Over.VARIANT, "TRY_VARIANT_GET(`_1`, '$.a.b[0]', 'variant')"),
        ("$1['a b']:c", Over.VARIANT, "TRY_VARIANT_GET(`_1`, '$[\"a b\"].c', 'variant')"),
        ("GET_PATH($1, 'a.b[2]')", Over.VARIANT, "TRY_VARIANT_GET(`_1`, '$.a.b[2]', 'variant')"),
        ("UPPER($1:a)", Over.VARIANT, "UPPER(TRY_VARIANT_GET(`_1`, '$.a', 'string'))"),
        ("$1:id", Over.COLUMNS, "`id`"),
        ('$1:"a b".c[1]', Over.COLUMNS, "GET(`a b`.`c`, 1)"),
    ],
)
def test_an_item_becomes_an_expression_of_spark(item: str, over: Over, expected: str) -> None:
    assert sql(item, over) == expected


def test_a_conversion_has_a_check_and_one_that_tries_has_none() -> None:
    failing, trying = select_items("$3::DATE, TRY_TO_DATE($3)")
    assert failing.sql == trying.sql
    (check,) = failing.checks
    assert check.sql == "NOT `_3` IS NULL AND TRY_CAST(`_3` AS DATE) IS NULL"
    assert (check.column, check.value, check.message) == ("$3", "`_3`", "it is no DATE")
    assert trying.checks == ()


def test_a_check_in_a_branch_holds_only_if_the_branch_is_taken() -> None:
    (item,) = select_items("IFF($1 = 'a', $2::DATE, $3::DATE)")
    first, second = (check.sql for check in item.checks)
    assert first.startswith("COALESCE(`_1` = 'a', FALSE) AND ")
    assert second.startswith("NOT COALESCE(`_1` = 'a', FALSE) AND ")
    (item,) = select_items("COALESCE($1::DATE, $2::DATE)")
    assert item.checks[1].sql.startswith("TRY_CAST(`_1` AS DATE) IS NULL AND ")


def test_items_know_their_texts_and_positions() -> None:
    items = select_items("$2, CONCAT($5, $1) , 'a,b', f($3)")
    assert [item.text for item in items] == ["$2", "CONCAT($5, $1)", "'a,b'", "f($3)"]
    assert [sorted(item.positions) for item in items] == [[2], [1, 5], [], [3]]
    assert highest_position(items) == 5
    assert highest_position(select_items("'a'")) == 0


@pytest.mark.parametrize(
    ("item", "over", "said"),
    [
        ("*", Over.FIELDS, r"SELECT \*"),
        ("t.*", Over.FIELDS, r"SELECT \*"),
        ("name", Over.FIELDS, "name is not a column of a file"),
        ("$0", Over.FIELDS, r"the first is \$1"),
        ("$x", Over.FIELDS, r"\$x"),
        ("COUNT($1)", Over.FIELDS, "one row at a time"),
        ("ROW_NUMBER() OVER (ORDER BY $1)", Over.FIELDS, "one row at a time"),
        ("(SELECT 1)", Over.FIELDS, "subqueries"),
        ("EXISTS (SELECT 1)", Over.FIELDS, "subqueries"),
        ("DISTINCT $1", Over.FIELDS, "DISTINCT"),
        ("$1 LIMIT 1", Over.FIELDS, "LIMIT"),
        ("$1 +", Over.FIELDS, "not an expression"),
        ("$1,", Over.FIELDS, "an item"),
        ("$1::GEOGRAPHY", Over.FIELDS, "GEOGRAPHY"),
        ("$1:a", Over.FIELDS, r"PARSE_JSON\(\$1\):a"),
        ("$1[$2]", Over.VARIANT, "constant steps"),
        ("YEAR($1)", Over.FIELDS, r"convert \$1 first"),
        ("TO_DATE($1, $2)", Over.FIELDS, "text in quotes"),
        ("TO_DATE($1, 'YYYY-QQ')", Over.FIELDS, "QQ"),
        ("TO_CHAR($1, 'YYYY')", Over.FIELDS, "TO_CHAR"),
        ("$2", Over.VARIANT, r"\$2 does not exist"),
        ("$1", Over.COLUMNS, "whole row"),
        ("$2:a", Over.COLUMNS, r"\$1 only"),
        ("FILTER($1:a, x -> x > 1)", Over.VARIANT, "lambda|column of a file"),
    ],
)
def test_what_is_no_value_of_a_row_is_refused_with_its_place(item: str, over: Over, said: str) -> None:
    with pytest.raises(SqlCompilationError, match=said):
        select_items(item, None, over)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("METADATA$FILE_CONTENT_KEY", "METADATA.FILE_CONTENT_KEY"),
        ("TO_TIME($1)", "TO_TIME"),
        ("XMLGET($1, 'a')", "XMLGET"),
        ("TO_NUMBER($1, '999')", "TO_NUMBER"),
        ("OBJECT_CONSTRUCT('a', $1)", "OBJECT_CONSTRUCT"),
        ("HASH($1)", "HASH"),
    ],
)
def test_functions_without_a_counterpart_are_refused_by_name(item: str, name: str) -> None:
    with pytest.raises(NotYetSupported, match=name):
        select_items(item)


def test_only_the_alias_of_the_files_may_qualify_a_column() -> None:
    assert select_items("X.$1", "x")[0].sql == "`_1`"
    with pytest.raises(SqlCompilationError, match="y is not the alias"):
        select_items("y.$1", "x")
