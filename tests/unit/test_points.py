"""Points are taken as a newcomer writes them: numbers, times and their texts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.change_streams.planning.starts import start_of
from tidemark.client.points import Offset, Statement, Stream, Timestamp, Version, as_moment
from tidemark.errors import InvalidArgument
from tidemark.streams.planning.points import as_point, moment_of

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (1, Version(1)),
        (0, Version(0)),
        ("7", Version(7)),
        (" 7 ", Version(7)),
        (NOON, Timestamp(NOON)),
        ("2026-01-31T12:00:00Z", Timestamp(NOON)),
        ("2026-01-31 13:00:00+01:00", Timestamp(NOON)),
        (Version(3), Version(3)),
        (Version("3"), Version(3)),  # type: ignore[arg-type]
        (Timestamp(NOON), Timestamp(NOON)),
        (Timestamp("2026-01-31T12:00:00Z"), Timestamp(NOON)),  # type: ignore[arg-type]
        (Offset(-60), Offset(-60)),
        (Stream("orders"), Stream("orders")),
        (Statement("nightly"), Statement("nightly")),
    ],
)
def test_a_point_is_what_was_written(given: Any, meant: object) -> None:
    assert as_point("at", given) == meant


@pytest.mark.parametrize(
    "given",
    [True, 1.5, "", "yesterday", "2026-01-31T12:00:00", NOON.replace(tzinfo=None), NOON.date(), [1], "9" * 5000, "²"],
)
def test_what_is_no_point_is_refused_by_its_argument(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="give a version number, or a time with a zone") as refused:
        as_point("before", given)

    assert refused.value.facts["argument"] == "before"


@pytest.mark.parametrize(
    "given",
    [
        Version(NOON),  # type: ignore[arg-type]
        Version(None),  # type: ignore[arg-type]
        Version(True),
        Timestamp(5),  # type: ignore[arg-type]
        Timestamp("yesterday"),  # type: ignore[arg-type]
        Timestamp(NOON.replace(tzinfo=None)),
        Offset("-60"),  # type: ignore[arg-type]
        Offset(True),
        Stream(5),  # type: ignore[arg-type]
        Statement(None),  # type: ignore[arg-type]
    ],
)
def test_a_point_of_something_else_is_refused_by_its_argument(given: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        as_point("end", given)
    assert refused.value.facts["argument"] == "end"


@pytest.mark.parametrize(
    ("given", "meant"),
    [(None, None), (NOON, NOON), ("2026-01-31T12:00:00Z", NOON), (" 2026-01-31 13:00:00+01:00 ", NOON), (5, 5)],
)
def test_a_moment_is_a_time_or_its_text(given: Any, meant: object) -> None:
    assert as_moment("start_timestamp", given) == meant


@pytest.mark.parametrize("given", ["", "now", "7", "2026-01-31T12:00:00"])
def test_a_text_that_is_no_moment_is_refused_by_its_argument(given: str) -> None:
    with pytest.raises(InvalidArgument, match=r"start_timestamp=.*give a time with a zone"):
        as_moment("start_timestamp", given)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("earliest", "earliest"), (" Now ", "now"), (NOON, NOON), ("2026-01-31T12:00:00Z", NOON)],
)
def test_a_group_begins_at_a_word_or_a_moment(given: Any, meant: object) -> None:
    assert start_of("start", given) == meant


@pytest.mark.parametrize("given", ["yesterday", "", "7", 7, None, "2026-01-31T12:00:00"])
def test_a_group_begins_nowhere_else(given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"start=.*it is earliest, now, or a time with a zone"):
        start_of("start", given)


def test_an_offset_that_is_no_time_is_refused() -> None:
    assert moment_of(Offset(-3600), NOON) == datetime(2026, 1, 31, 11, tzinfo=UTC)
    for seconds, problem in (
        (1, "zero or below"),
        (float("nan"), "zero or below"),
        (-1e11, "no year is that long ago"),
    ):
        with pytest.raises(InvalidArgument, match=problem):
            moment_of(Offset(seconds), NOON)
