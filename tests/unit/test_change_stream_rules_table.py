"""The tables of invariants and errors of change streams are whole, and what they say is tested is a test."""

from __future__ import annotations

import re

import pytest

import tidemark.errors
from tests.guarantees.test_partition_invariants import BROKEN
from tests.unit.test_rules_table import ROOT, TEST, named_in

PAGE = ROOT / "provider" / "docs" / "change-stream-rules.md"
TEXT = PAGE.read_text(encoding="utf-8")
INVARIANT = re.compile(r"^\| (I\d) \|(.+)\|(.+)\|$", re.MULTILINE)
CODES = ("INVALID_ARGUMENT", "OUT_OF_RANGE", "UNIMPLEMENTED", "NOT_FOUND")
ERROR = re.compile(rf"^\|(.+)\| ({'|'.join(CODES)}) \|(.+)\|(.+)\|(.+)\|$", re.MULTILINE)
SAID = (
    "start_timestamp must not be null",
    "too far in the past",
    "too far in the future",
    "is known after a capture later than that",
    "start_timestamp must be <= end_timestamp",
    "heartbeat_milliseconds must not be null",
    "heartbeat_milliseconds must be within",
    "read_options must be null",
    "not a literal or parameter",
    "partition_token is invalid",
    "invalid for the partition",
    "This partition is no longer valid",
    "Change Stream not found",
    "none",
    "none",
)


def errors() -> list[tuple[str, str, str, str, str]]:
    return [tuple(cell.strip() for cell in row) for row in ERROR.findall(TEXT)]


def test_every_invariant_has_one_row_is_broken_on_purpose_and_has_tests_of_its_own() -> None:
    rows = INVARIANT.findall(TEXT)
    assert [name for name, _, _ in rows] == [f"I{number}" for number in range(1, 10)]
    assert {name for name, _, _ in rows} == set(BROKEN)
    assert [name for name, words, where in rows if not words.strip() or not TEST.search(where)] == []


def test_every_error_of_a_read_has_one_row() -> None:
    assert tuple(said for _, _, _, said, _ in errors()) == SAID


@pytest.mark.parametrize("row", errors(), ids=lambda row: row[0])
def test_an_error_is_one_and_its_words_stand_in_each_test_that_is_named(row: tuple[str, str, str, str, str]) -> None:
    _, _, error, said, where = row
    if error.startswith("none: "):
        assert TEST.search(where) or where.startswith("none: ")
        return
    assert issubclass(getattr(tidemark.errors, error.strip("`")), tidemark.errors.TidemarkError)
    files = [file for file, _ in TEST.findall(where)]
    assert files
    assert [file for file in files if said not in (ROOT / file).read_text(encoding="utf-8")] == []


def test_every_test_that_is_named_exists() -> None:
    named = TEST.findall(TEXT)
    assert len(named) > len(SAID) + 9
    assert [f"{file}::{name}" for file, name in named if name not in named_in(file)] == []
