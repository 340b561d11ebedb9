"""Sets of transactions by their GTIDs: what one has and another lacks, and what a log brings again."""

from __future__ import annotations

import random

import pytest

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceKind
from tidemark.replication.planning.gtids import Domains, Intervals, PendingIntervals, parse_gtids

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4c4302d3-ea68-11f1-88ea-02fc00000001"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A}:1-3:4-5:9,\n{B}:7", f"{A}:1-5:9,{B}:7"),
        (f"{A.upper()}:2:1", f"{A}:1-2"),
        (f"{A}:1-2:tag:1-3:5", f"{A}:1-2,{A}:tag:1-3:5"),
    ],
)
def test_a_set_of_a_mysql_is_read_and_written_in_one_form(text: str, normal: str) -> None:
    assert parse_gtids(SourceKind.MYSQL, text).text == normal
    assert Intervals(normal).text == normal


def test_a_set_grows_and_is_subtracted_as_sets_of_numbers_are() -> None:
    chance = random.Random(7)
    for _ in range(200):
        ours, theirs = (set(chance.sample(range(1, 40), chance.randint(0, 30))) for _ in range(2))
        first, second = Intervals(), Intervals()
        for numbers, grown in ((ours, first), (theirs, second)):
            for number in chance.sample(sorted(numbers), len(numbers)):
                grown.add(f"{A}:{number}")
        assert first.count == len(ours)
        assert {number for number in range(41) if f"{A}:{number}" in first} == ours
        rest = first.without(second)
        assert {number for number in range(41) if f"{A}:{number}" in rest} == ours - theirs
        assert bool(rest) == bool(ours - theirs)
        assert Intervals(rest.text).text == rest.text


def test_captured_transactions_are_met_once_in_any_order_of_a_mysqls_log() -> None:
    pending = PendingIntervals(Intervals(f"{A}:1-3,{A}:t:1"))
    assert [pending.take(gtid) for gtid in (f"{A}:t:1", f"{A}:4", f"{A}:2", "")] == [True, False, True, False]
    earlier = pending.copy()
    assert pending.text == f"{A}:1:3"
    assert pending.take(f"{A}:1")
    assert pending.take(f"{A}:3")
    assert (bool(pending), pending.text) == (False, "")
    assert (bool(earlier), earlier.text) == (True, f"{A}:1:3"), "a copy is as it was"


def test_a_position_of_a_mariadb_has_the_newest_of_each_domain() -> None:
    found = parse_gtids(SourceKind.MARIADB, "7-1-3, 0-901-17")
    assert found.text == "0-901-17,7-1-3"
    found.add("0-902-18")
    assert found.text == "0-902-18,7-1-3"
    with pytest.raises(InvalidArgument, match="0-1-17"):
        found.add("17")


@pytest.mark.parametrize(
    ("before", "covered"),
    [
        ("", True),
        ("0-901-16", True),
        ("0-901-17,7-1-3", True),
        ("0-901-18", False),
        ("0-902-17", False),
        ("1-1-1", False),
    ],
)
def test_a_file_that_begins_with_more_than_was_captured_is_not_read_from(before: str, covered: bool) -> None:
    assert Domains("0-901-17,7-1-3").covers(Domains(before)) is covered


def test_missing_transactions_of_a_mariadb_are_known_by_their_numbers() -> None:
    captured = Domains("0-901-17,7-1-3")
    assert captured.without(Domains("0-902-20,7-1-3")).text == ""
    assert captured.without(Domains("0-901-16,7-1-4")).text == "0-901-17"
    assert captured.without(Domains("0-901-17")).text == "7-1-3"
    assert captured.without(Domains("0-902-17,7-1-3")).text == "0-901-17", "another one of that number"


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        ("0-1-102,7-1-3", ""),
        ("0-1-102,0-2-101,7-1-3", ""),  # a peer's transaction is the newest of the domain, with a lower number
        ("0-1-101,0-2-400,7-1-3", "0-1-102"),  # its own were set back
        ("0-2-400", "0-1-102"),  # domain 7 was removed from the log
        ("", "0-1-102,7-1-3"),
    ],
)
def test_transactions_that_a_mariadb_lost_are_known_by_the_state_of_its_log(state: str, missing: str) -> None:
    assert Domains("0-1-102,7-1-3").missing_from(state) == missing


def test_captured_transactions_of_a_domain_end_with_the_newest() -> None:
    pending = Domains("0-901-3,7-1-2").pending(Domains("0-901-1,7-1-2"))
    assert [pending.take(gtid) for gtid in ("7-1-3", "0-901-2", "1-1-1")] == [False, True, False]
    assert pending.text == "0-901-3"
    assert pending.take("0-901-3")
    assert not pending
    assert not pending.take("0-901-4"), "what comes behind it was not captured"
