"""Sessions that wait behind a copy are counted together, also across attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tidemark.replication.sources.waits import Waits


def _late(bound: float, looks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """At which of the looks (when, and who waits, a letter each) somebody is late, and who."""
    times = [at for at, _ in looks]
    waits = Waits(timedelta(seconds=bound), iter(times).__next__)
    found = [(at, waits.late(who)) for at, who in looks]
    return [(at, who) for at, who in found if who is not None]


def test_a_session_is_late_once_it_has_waited_for_the_bound() -> None:
    assert _late(3, [(0, "a"), (1, "a"), (2, "a"), (3, "a")]) == [(3, "a")]
    assert _late(3, [(0, "a"), (1, "a"), (2, "a")]) == []


def test_waits_of_one_after_the_other_count_together() -> None:
    assert _late(3, [(0, "a"), (1, "b"), (2, "ac"), (3, "d")]) == [(3, "d")]
    looks = [(0, "a"), (1, ""), (2, "b"), (3, ""), (4, "c"), (5, ""), (6, "d"), (7, "e")]
    assert _late(3, looks) == [(6, "d"), (7, "e")]


def test_nobody_is_late_at_a_look_at_which_nobody_waits() -> None:
    assert _late(3, [(0, "a"), (1, "a"), (2, "a"), (4, ""), (5, "b")]) == [(5, "b")]


def test_short_waits_now_and_then_end_no_copy() -> None:
    assert _late(3, [(float(at), "a" if at % 20 == 0 else "") for at in range(600)]) == []
