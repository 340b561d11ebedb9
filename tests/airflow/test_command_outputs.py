"""A text in the output of a command is that text in every output, and never a number that reads like it."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tidemark.cli._answers import print_facts, print_rows

pytestmark = pytest.mark.airflow
NUMBERS = (
    *("007", "1e5", "1E+5", ".5", "5.", "0x10", "0o17", "nan", "inf", "-0", "1.10", "12345678901234567890"),
    *("0.12345678901234567", "1_000", "1,000", "12:30:45", "true", "null", "2024-01-01"),
)
WORDS = (" begins with a blank", "[a] :a:", "日本 é", "x" * 300)


@pytest.mark.parametrize("text", [*NUMBERS, *WORDS])
def test_plain_text_has_each_text_in_a_column_of_its_own(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"007": text, "b": "x"}, {"007": "", "b": text}], "plain")
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["007", "b"]
    assert re.fullmatch(f"{re.escape(text)}  +x", first)
    assert second.endswith(f"  {text}")
    assert not second.removesuffix(text).strip()


def test_plain_text_keeps_the_lines_of_a_cell_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"a": "1e5\n日本", "b": None, "c": "2\n3"}, {"a": "4", "b": "5", "c": "6"}], "plain")
    assert capsys.readouterr().out == "a     b  c\n1e5      2\n日本     3\n4     5  6\n"


@pytest.mark.parametrize("text", [*NUMBERS, *WORDS])
def test_json_and_yaml_have_each_text_as_a_text(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": text, "b": [text], "c": {text: text}}]
    print_rows(rows, "json")
    assert json.loads(capsys.readouterr().out) == rows
    print_rows(rows, "yaml")
    assert yaml.safe_load(capsys.readouterr().out) == rows


@pytest.mark.parametrize("text", ["1e5", "1E+5", ".5", "5.", "0o17", "007", "0x1F", "-1e-5"])
def test_numbers_of_yaml_1_2_are_in_quotes(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """PyYAML reads YAML 1.1; a reader of YAML 1.2 makes 100000.0 of a bare `1e5`."""
    print_rows([{"a": text}], "yaml")
    assert capsys.readouterr().out.strip() == f"- a: '{text}'"


@pytest.mark.parametrize("text", [*NUMBERS, *WORDS[:-1]])
def test_a_table_has_each_text_unchanged(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"name": text}, {"rows": [{"a": text, "b": "x"}]}, "table")
    cells = [cell for line in capsys.readouterr().out.splitlines() for cell in re.split(r" +\| |\s+$", line)]
    assert cells.count(text) == 2


def test_an_empty_list_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], "plain")
    assert capsys.readouterr().out == "No data found\n"
