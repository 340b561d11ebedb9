"""Positions of a PostgreSQL sort as its log does, and are the same in every notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import START, LogPosition
from tidemark.replication.planning.positions import lsn_of, lsn_text, parse_lsn, position_of_lsn, position_text

LSNS = st.integers(min_value=0, max_value=(1 << 64) - 1)


@given(LSNS)
def test_every_notation_gives_the_number_back(lsn: int) -> None:
    assert parse_lsn(lsn_text(lsn)) == lsn
    assert parse_lsn(f" {lsn_text(lsn).lower()} ") == lsn
    assert lsn_of(position_of_lsn(lsn)) == lsn


@given(LSNS, LSNS)
def test_positions_sort_as_numbers_do(one: int, other: int) -> None:
    assert (position_of_lsn(one) < position_of_lsn(other)) == (one < other)
    assert position_of_lsn(one) > START


@given(st.integers(0, (1 << 64) - 1))
def test_a_position_that_was_told_can_be_given_back_and_so_can_a_stored_one(lsn: int) -> None:
    position = position_of_lsn(lsn)
    assert position_of_lsn(parse_lsn(position_text(position))) == position
    assert position_of_lsn(parse_lsn(position.commit.lower())) == position


def test_a_position_within_a_transaction_and_one_of_another_source_are_told() -> None:
    assert position_text(LogPosition("000000000157C870", 3)) == "0/157C870#3"
    assert position_text(START) == "0/0"
    assert position_text(LogPosition("mysql-bin.000001:4")) == "mysql-bin.000001:4"


def test_the_notation_is_that_of_the_server() -> None:
    assert lsn_text(0x16B374D848) == "16/B374D848"
    assert position_of_lsn(0x16B374D848) == LogPosition("00000016B374D848")
    assert lsn_text(0) == "0/0"
    assert lsn_of(START) == 0


@pytest.mark.parametrize("text", ["", "16", "16/", "/1", "16/B374D8481", "g/1", "1/2/3", "-1/2", "0x1/2"])
def test_what_is_no_lsn_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="16/B374D848"):
        parse_lsn(text)


@pytest.mark.parametrize("lsn", [-1, 1 << 64])
def test_what_has_no_64_bits_is_refused(lsn: int) -> None:
    with pytest.raises(InvalidArgument, match="64 bits"):
        position_of_lsn(lsn)
    with pytest.raises(InvalidArgument, match="64 bits"):
        lsn_text(lsn)


@pytest.mark.parametrize("commit", ["mysql-bin.000001:4", "16/B374D848", "00000016b374d848", "16B374D848"])
def test_a_position_of_another_source_is_refused(commit: str) -> None:
    with pytest.raises(InvalidArgument, match="not a position of PostgreSQL"):
        lsn_of(LogPosition(commit))
