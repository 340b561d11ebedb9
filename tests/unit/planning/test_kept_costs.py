"""The way to refresh that AUTO takes, by sizes alone."""

from __future__ import annotations

import pytest

from tests.unit.planning.test_kept_shapes import TABLES, expanded, shape
from tidemark.materialized.model.refreshes import Measured
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.planning.cost import BaseSize, Estimate, choose
from tidemark.materialized.planning.shape import plain_shape
from tidemark.model.statements import RefreshHow

MIB = 1 << 20
SUMS = shape("SELECT k, sum(n) AS s FROM t GROUP BY k")
EXTREMES = shape("SELECT k, max(n) AS s FROM t GROUP BY k")
LINEAR = shape("SELECT t.k, n, x FROM t JOIN u ON t.k = u.k")
OUTER = shape("SELECT t.k, n, x FROM t LEFT JOIN u ON t.k = u.k")
APART = shape("SELECT t.k, n, x FROM t LEFT JOIN u ON t.n > u.x")
PLAIN = plain_shape(expanded("SELECT k, v FROM t"), "window functions")


def estimate(kept: KeptShape, *changed: int, mib: int = 10_000, kept_mib: int = 1, **more: int) -> Estimate:
    """Bases of `mib`, with so many MiB of changes."""
    columns = [tuple(TABLES[base.rpartition("/")[2].strip("`")]) for base in kept.followed.bases]
    bases = [BaseSize(one * MIB, mib * MIB, names) for one, names in zip(changed, columns, strict=True)]
    return Estimate(kept, tuple(bases), kept_mib * MIB, **more)


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        (estimate(SUMS, 10), RefreshHow.CHANGES),
        (estimate(SUMS, 10, mib=20), RefreshHow.WHOLE),  # the fixed cost is more than the scan
        (estimate(SUMS, 9_000), RefreshHow.WHOLE),
        (estimate(SUMS, 10, kept_rows=201, groups=100), RefreshHow.COMPACTED),
        (estimate(SUMS, 10, kept_rows=200, groups=100), RefreshHow.CHANGES),
        (estimate(EXTREMES, 10), RefreshHow.CHANGES),
        (estimate(LINEAR, 10, 0), RefreshHow.CHANGES),
        (estimate(LINEAR, 10, 10, kept_mib=9_000), RefreshHow.CHANGES),
        (estimate(LINEAR, 5_000, 5_000), RefreshHow.WHOLE),
        (estimate(OUTER, 10, 0, kept_mib=9_000), RefreshHow.CHANGES),
        (estimate(APART, 0, 10), RefreshHow.WHOLE),
        (estimate(PLAIN, 1), RefreshHow.WHOLE),
    ],
)
def test_the_cheaper_way_is_taken(asked: Estimate, how: RefreshHow) -> None:
    found = choose(asked)
    assert found.how is how
    cheaper = found.incremental_bytes is not None and found.incremental_bytes < found.full_bytes
    assert cheaper is (how is not RefreshHow.WHOLE)


def test_the_choice_gives_its_reason() -> None:
    assert choose(estimate(PLAIN, 1)).why == "window functions"
    assert choose(estimate(APART, 0, 10)).why == "no column ties what has changed to its groups or partners"
    assert "bytes" in choose(estimate(SUMS, 10)).why


def test_a_lost_minimum_may_read_the_base() -> None:
    sums, extremes = (choose(estimate(one, 10)).incremental_bytes for one in (SUMS, EXTREMES))
    assert sums is not None
    assert extremes is not None
    assert extremes > sums


CHANGES, WHOLE = RefreshHow.CHANGES, RefreshHow.WHOLE


def taken(how: RefreshHow, *seconds: float) -> list[Measured]:
    """Refreshes of 100 MiB by changes, or of 10,000 MiB in full."""
    return [Measured(how, 100 * MIB if how is CHANGES else 10_000 * MIB, one) for one in seconds]


def test_once_both_ways_were_taken_seconds_decide() -> None:
    asked, slow = estimate(SUMS, 10), taken(CHANGES, 10.0, 10.0)
    assert choose(asked, slow).how is CHANGES
    assert choose(asked, [*slow, *taken(WHOLE, 2.0)]).how is WHOLE
    assert "by earlier refreshes, changes would take" in choose(asked, [*slow, *taken(WHOLE, 2.0)]).why
    assert choose(asked, [*slow, *taken(WHOLE, 2_000.0)]).how is CHANGES
    assert "all would" in choose(asked, [*slow, *taken(WHOLE, 2_000.0)]).why


def test_a_single_refresh_by_changes_decides_nothing() -> None:
    asked = estimate(SUMS, 10)
    assert choose(asked, [*taken(WHOLE, 2.0), *taken(CHANGES, 3_600.0)]).how is CHANGES


def test_the_median_of_the_last_refreshes_is_their_pace() -> None:
    asked, whole = estimate(SUMS, 10), taken(WHOLE, 20.0)
    assert choose(asked, [*whole, *taken(CHANGES, 100.0, 2.0)]).how is CHANGES  # one was cold
    assert choose(asked, [*whole, *taken(CHANGES, 100.0, 100.0, 2.0)]).how is WHOLE
    assert choose(asked, [*whole, *taken(CHANGES, *[100.0] * 5, *[2.0] * 9)]).how is WHOLE  # too long ago


def test_all_rows_are_written_once_to_know_their_seconds() -> None:
    near, far = estimate(SUMS, 10, mib=100), estimate(SUMS, 10)
    assert choose(near).how is CHANGES
    assert choose(near, taken(CHANGES, 1.0, 1.0)).how is WHOLE
    assert "whose seconds are not known" in choose(near, taken(CHANGES, 1.0, 1.0)).why
    assert choose(near, [*taken(WHOLE, 1_000.0), *taken(CHANGES, 1.0, 1.0)]).how is CHANGES
    assert choose(far, taken(CHANGES, 1.0, 1.0)).how is CHANGES


def test_a_compaction_is_chosen_by_bytes() -> None:
    asked = estimate(SUMS, 10, kept_rows=201, groups=100)
    assert choose(asked, [*taken(CHANGES, 100.0, 100.0), *taken(WHOLE, 0.1)]).how is RefreshHow.COMPACTED
