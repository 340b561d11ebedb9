"""Places in binary log files sort as their texts do, and are read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import START, LogPosition
from tidemark.replication.planning.positions import (
    FilePlace,
    lsn_of,
    parse_file_place,
    place_of,
    position_text,
    require_position,
)

PLACES = st.builds(
    FilePlace,
    st.sampled_from(["mysql-bin", "a.b-c", "binlog"]),
    st.integers(0, 2**31 - 1),
    st.integers(4, 10**12 - 1),
)


@given(PLACES, PLACES)
def test_positions_sort_by_file_number_then_offset(one: FilePlace, other: FilePlace) -> None:
    by_place = (one.number, one.offset) < (other.number, other.offset)
    if (one.number, one.offset) != (other.number, other.offset):
        assert (one.position < other.position) == by_place
    assert one.position > START


@given(PLACES)
def test_a_place_is_read_as_it_is_written(place: FilePlace) -> None:
    assert place_of(place.position) == place
    assert parse_file_place(position_text(place.position)) == place
    assert parse_file_place(f" {place.position.commit} ") == place
    require_position(place.text)


def test_a_file_beyond_six_digits_comes_after_one_of_six() -> None:
    assert FilePlace.of_file("bin.999999", 4).position < FilePlace.of_file("bin.1000000", 4).position


def test_what_is_no_place_is_refused_with_an_example() -> None:
    for text in ("", "mysql-bin.000003", "mysql-bin:7", "mysql-bin.000003:-1", "16/B374D848"):
        with pytest.raises(InvalidArgument, match=r"mysql-bin\.000003:4711"):
            parse_file_place(text)
    with pytest.raises(InvalidArgument):
        place_of(LogPosition("0000000000000010"))
    with pytest.raises(InvalidArgument):
        lsn_of(FilePlace("b", 1, 4).position)
    with pytest.raises(InvalidArgument, match="PostgreSQL"):
        require_position("somewhere")


def test_an_event_within_a_transaction_has_its_number_behind_the_place() -> None:
    position = LogPosition(FilePlace("mysql-bin", 3, 4711).position.commit, 3)
    assert position_text(position) == "mysql-bin.000003:4711#3"
