"""What Python calls a digit is not always a number: such a text is refused in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.errors import InvalidArgument, SqlCompilationError
from tidemark.operators._base import whole_number_of
from tidemark.sql.text import Cursor
from tidemark.streams.planning.points import version_or_time
from tidemark.streams.planning.stream_sql.constants import Constants, NotConstant
from tidemark.streams.planning.vacuum_results import extension_of

ODD = ("²", "1²", "①", "9" * 5000)


@pytest.mark.parametrize("text", ODD)
def test_an_argument(text: str) -> None:
    for request in (extension_of, lambda said: whole_number_of("n", said), lambda said: version_or_time("at", said)):
        with pytest.raises(InvalidArgument):
            request(text)


@pytest.mark.parametrize("text", ["²", "①", "9" * 5000])
def test_a_number_in_sql(text: str) -> None:
    with pytest.raises(SqlCompilationError, match="expected a number"):
        Cursor(f"{text} ").whole_number("a number")


def test_a_time_in_sql() -> None:
    with pytest.raises(NotConstant):
        Constants(datetime.now(UTC), UTC).moment("²" * 9)


def test_plain_digits_are_numbers() -> None:
    assert (whole_number_of("n", " 7 "), version_or_time("at", "7"), whole_number_of("n", 7)) == (7, 7, 7)
