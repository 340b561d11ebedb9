"""Keys become few ranges that hold them all, by which files can be left out."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from tidemark.changes.planning.views.ranges import ranges


@given(st.sets(st.integers(-(10**18), 10**18), min_size=1), st.integers(1, 8))
def test_all_keys_are_in_few_ranges_that_begin_and_end_with_a_key(keys: set[int], most: int) -> None:
    found = ranges(sorted(keys), most)
    assert len(found) <= most
    assert all(any(first <= key <= last for first, last in found) for key in keys)
    assert {end for span in found for end in span} <= keys


def test_the_widest_gaps_are_left_out() -> None:
    assert ranges([1, 2, 3, 100, 101, 5000], 3) == [(1, 3), (100, 101), (5000, 5000)]
    assert ranges([date(2026, 1, 1), date(2026, 1, 2), date(2026, 6, 1)], 2) == [
        (date(2026, 1, 1), date(2026, 1, 2)),
        (date(2026, 6, 1), date(2026, 6, 1)),
    ]
