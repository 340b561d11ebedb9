"""A text that is parsed and written again means to Spark what it meant before."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tidemark.changes.planning.views.text import parse_view, sql_of
from tidemark.results.planning.functions import PURE
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tokens, tree_of, written

_SAME = {
    "approx_percentile": "percentile_approx",
    "bit_get": "getbit",
    "ceiling": "ceil",
    "char": "chr",
    "char_length": "length",
    "character_length": "length",
    "dateadd": "date_add",
    "ifnull": "coalesce",
    "lcase": "lower",
    "len": "length",
    "log": "ln",
    "mod": "a % b",
    "nvl": "coalesce",
    "position": "locate",
    "pow": "power",
    "reduce": "aggregate",
    "rlike": "regexp_like",
    "sha1": "sha",
    "signum": "sign",
    "substr": "substring",
    "to_unix_timestamp": "unix_timestamp",
    "ucase": "upper",
    "instr": "locate(b, a",
    "collate": "a collate b",
    "date_sub": "date_add(a, b * -1)",
    "div": "(a div b)",
    "extract": "extract(a from b)",
    "from_utc_timestamp": "from_utc_timestamp(cast(a as timestamp), b)",
    "ilike": "a ilike b",
    "like": "a like b",
    "to_utc_timestamp": "to_utc_timestamp(cast(a as timestamp), b)",
    "space": "repeat(' ', a)",
    "ltrim": "trim(leading a from b)",
    "rtrim": "trim(trailing a from b)",
    "trim": "trim(a from b)",
    "named_struct": "struct(b as a)",
    "struct": "struct(a as a",
    "str_to_map": "str_to_map(a, ",
    **{name: f"cast(a as {name})" for name in ("boolean", "date", "double", "float", "int", "string", "timestamp")},
    "to_timestamp": "cast(a as timestamp)",
    "overlay": "overlay(a placing b from c",
}
"""Functions that are written as another one, or by other words, with the same values."""

_MORE = {"map_from_arrays": 2, "regexp_replace": 3, "to_number": 2}  # arguments at least, or Spark refuses the call
_OPERATORS = frozenset({"and", "any", "in", "not", "or", "some"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'O''Brien'", "O'Brien"),
        ('"say ""so"""', 'say "so"'),
        ("''''", "'"),
        ("''", ""),
        ("'a\"\"b'", 'a""b'),
        ("\"a''b\"", "a''b"),
        (r"'a\'''b'", "a''b"),
    ],
)
def test_a_doubled_quote_is_one_quote_of_the_text(text: str, value: str) -> None:
    (found,) = tree_of(f"SELECT {text}", SPARK).expressions
    assert found == exp.Literal.string(value)
    assert tree_of(written(found, SPARK), SPARK) == found
    (_, token) = tokens(f"SELECT {text}", SPARK)
    assert (token.start, token.end) == (7, 6 + len(text))


def test_texts_in_a_row_are_joined() -> None:
    assert written(tree_of("SELECT 'a' 'b'", SPARK), SPARK) == "SELECT CONCAT('a', 'b')"


@pytest.mark.parametrize(
    "call",
    [
        "datediff(a, b)",  # days of the calendar, where DATEDIFF of units counts 24 hours
        "date_diff(a, b)",
        "unix_date(a)",
        "log10(a)",  # LOG(10, a) of 1000 is 2.9999999999999996
        "log2(a)",
        "array_size(a)",  # NULL of NULL under all settings, where SIZE may give -1
        "get_json_object(a, '$.x-y[0]')",  # Spark's paths know no double quotes
        "get_json_object(a, '$[\\'x y\\']')",
        "trunc(a, b)",  # b is a column
        "date_trunc(a, b)",
        "CAST(a AS TIME)",
    ],
)
def test_a_call_for_which_another_one_has_other_values_is_kept_as_it_stands(call: str) -> None:
    text = parse_view("v", f"SELECT {call} AS c FROM t")
    assert sql_of(text.tree).lower() == f"SELECT {call} AS c FROM t".lower()


def test_a_difference_in_units_keeps_its_unit() -> None:
    tree = tree_of("SELECT datediff(HOUR, a, b)", SPARK)
    assert written(tree, SPARK) == "SELECT DATEDIFF(HOUR, a, b)"
    assert {column.name for column in tree.find_all(exp.Column)} == {"a", "b"}


@pytest.mark.parametrize("name", sorted(PURE - _OPERATORS))
def test_a_function_of_spark_is_written_by_its_name_or_by_one_with_the_same_values(name: str) -> None:
    for count in range(_MORE.get(name, 1), 4):
        try:
            (tree,) = tree_of(f"SELECT {name}({', '.join('abc'[:count])})", SPARK).expressions
        except SqlNotUnderstood:
            continue
        has_all = len(list(tree.find_all(exp.Column))) == count  # sqlglot drops those that no function has
        found = written(tree, SPARK).lower()
        if has_all and not isinstance(tree, exp.AggFunc) and not found.startswith(f"{name}(a"):
            assert name in _SAME, found
            assert found.startswith((f"{_SAME[name]}(", _SAME[name]))
