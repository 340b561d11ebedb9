"""The table of rules is whole, and what it says is tested is a test."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "provider" / "docs" / "rules.md"
RANGES = (
    (1, 37),
    (40, 41),
    (50, 63),
    (65, 67),
    (70, 94),
    (100, 105),
    (110, 114),
    (120, 126),
    (130, 132),
    (140, 142),
    (145, 145),
)
RULES = [number for first, last in RANGES for number in range(first, last + 1)]
ROW = re.compile(r"^\| R(\d+) \|(.*)\|(.*)\|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MENTIONED = re.compile(r"\bR(\d{1,3})[a-h]?\b")
KINDS = ("kept", "kept with a difference", "in part", "not applicable", "planned")


def rows() -> list[tuple[int, str, str, str]]:
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [(int(number), rule.strip(), how.strip(), where.strip()) for number, rule, how, where in found]


@cache
def named_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return frozenset(name for name in functions if name.startswith("test_"))


def test_every_rule_has_exactly_one_row_in_order() -> None:
    assert [number for number, *_ in rows()] == RULES
    assert Counter(RULES).most_common(1)[0][1] == 1


def test_every_row_says_what_the_rule_is_how_it_is_kept_and_where_it_is_tested() -> None:
    for number, rule, how, where in rows():
        assert rule, number
        assert how.startswith(KINDS), number
        tested = TEST.search(where) is not None
        assert tested or where.startswith(("planned: ", "none: ")), number
        assert tested or not how.startswith("kept"), f"R{number} is said to be kept, but no test shows it"


def test_every_test_that_is_named_exists() -> None:
    named = TEST.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > len(RULES) // 2
    assert [f"{file}::{name}" for file, name in named if name not in named_in(file)] == []


def test_every_rule_that_code_and_tests_mention_is_in_the_table() -> None:
    files = [*(ROOT / "provider").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    mentioned = {int(n) for file in files for n in MENTIONED.findall(file.read_text(encoding="utf-8"))}
    assert sorted(mentioned - set(RULES)) == []
