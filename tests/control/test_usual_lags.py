"""Objects that are behind their usual lag: when, since when, the way out, and in how many queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.airflow.monitored import HOUR, Monitored
from tidemark.control.object_kinds import KINDS, Severity, kind_named
from tidemark.control.object_list import ObjectsWish, ShownObject
from tidemark.control.object_needs import RANKS, REASONS
from tidemark.control.usual_lags import FEWEST, UsualLag, between, usual_lag, usual_lags
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.gauges import look_for_gauges
from tidemark.streams.worker.object_lineage import LineageWish, read_lineage
from tidemark.streams.worker.object_needs import NeedsPage, look_at_all, needs_page
from tidemark.streams.worker.object_states import describe_object, list_objects
from tidemark.streams.worker.sources import open_table

DOCS = Path(__file__).parents[2] / "provider" / "docs" / "how-to" / "watch-streams.md"
ROUNDS = 12


@pytest.fixture
def made(tmp_path: Path, task_store: str) -> Iterator[Monitored]:
    found = Monitored(tmp_path / "lake", task_store)
    found.store.require_revision()  # asked once, so that tests count the queries behind it
    yield found
    found.store.close()


def consumed(made: Monitored, name: str, *, every: float, versions: int = 1, rounds: int = ROUNDS) -> datetime:
    """The time of the last of these rounds: the stream takes so many versions at the moment when they are there."""
    made._clock(hours=every * (rounds + 1))
    made._stream(name)
    for number in range(rounds):
        made._clock(hours=every * (rounds - number))
        made._commit(name, times=versions)
        made._consume(f"run_{number}", name)
    return made.world.clock.now


def looked(made: Monitored, at: datetime) -> NeedsPage:
    made.world.clock.now = at
    known = look_at_all(made.store, open_table)
    wish: dict[str, Any] = {"after": None, "limit": 50, "now": at}
    return made.store.read(lambda c: needs_page(c, known, ObjectsWish(), **wish))


def test_a_stream_that_is_read_at_once_is_behind_after_an_hour(made: Monitored) -> None:
    last = consumed(made, "orders", every=5)
    made.world.clock.now = last + HOUR
    made._commit("orders", times=1)
    waiting = last + HOUR
    assert looked(made, waiting + timedelta(minutes=59)).needs == ()
    found = looked(made, waiting + timedelta(minutes=90))
    (one,) = found.needs
    assert (one.need, one.shown.state, one.since) == ("behind_usual", "behind", waiting + HOUR)
    assert one.shown.trouble == "it is behind its usual lag of 1 s"
    assert one.advice.commands == ("airflow tidemark objects history stream orders",)
    assert (found.total, found.counts["warning"], one.since_seen) == (1, 1, False)
    made._consume("late", "orders")
    assert looked(made, made.world.clock.now).needs == ()


def test_a_stream_that_is_read_every_five_hours_may_be_ten_hours_behind(made: Monitored) -> None:
    last = consumed(made, "orders", every=5, versions=2)
    made._commit("orders", times=2)
    assert looked(made, last + 9.9 * HOUR).needs == ()
    (one,) = looked(made, last + 10.1 * HOUR).needs
    assert one.need == "behind_usual"
    assert one.since is not None
    assert abs(one.since - (last + 10 * HOUR)) < timedelta(seconds=1)


def test_list_description_lineage_and_gauges_judge_as_the_overview_does(made: Monitored) -> None:
    last = consumed(made, "orders", every=5)
    made.world.clock.now = last + HOUR
    made._commit("orders", times=1)
    for hours, severity, rank in ((1.9, Severity.OK, 0), (2.5, Severity.WARNING, 2)):
        made.world.clock.now = last + hours * HOUR
        (listed,) = list_objects(made.store, open_table, ObjectsWish(kind="stream"))
        shown = describe_object(made.store, open_table, "stream", "orders")
        (drawn,) = read_lineage(made.store, open_table, LineageWish("stream", "orders")).objects.values()
        readings = look_for_gauges(made.store, open_table, within=timedelta(hours=1))
        assert [one.severity for one in (listed, shown, drawn)] == [severity] * 3
        assert [one.value for one in readings if one.name == "object_severity"] == [rank]
        counted = {tuple(one.tags.values()): one.value for one in readings if one.name == "objects"}
        assert counted["stream", severity.value] == 1
        problems = list_objects(made.store, open_table, ObjectsWish(problems=True))
        assert [one.trouble for one in problems] == (["it is behind its usual lag of 1 s"] if rank else [])


def test_a_short_history_tells_no_habit(made: Monitored) -> None:
    last = consumed(made, "orders", every=1, rounds=FEWEST)  # one high fewer than rounds
    made._commit("orders", times=1)
    assert looked(made, last + 100 * HOUR).needs == ()


def test_one_night_without_runs_is_not_usual() -> None:
    night = [60.0] * 20 + [50_000.0]
    assert usual_lag(night) == UsualLag(60.0)
    assert usual_lag(night[-FEWEST:]) == UsualLag(50_000.0)
    assert usual_lag([1.0] * (FEWEST - 1)) is None
    assert (UsualLag(60.0).limit, UsualLag(7200.0).limit) == (3600.0, 14_400.0)


def test_a_high_is_the_age_of_the_state_before() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    states = [(start + n * HOUR, start + n * HOUR - timedelta(minutes=5)) for n in range(3)]
    assert between(states) == [3900.0, 3900.0]
    assert between(states[:1]) == between([]) == []


def test_those_with_a_problem_and_those_that_are_stopped_are_not_judged_by_it(made: Monitored) -> None:
    last = consumed(made, "orders", every=1)
    made._commit("orders", times=1)
    made._fail("orders", TransactionKey("shop_mirror", "r", "t"), times=1)
    (one,) = looked(made, last + 90 * HOUR).needs
    assert one.need == "failed"


def shown(kind: str, uid: str) -> ShownObject:
    return ShownObject(kind, uid, uid, None, None, "s", Severity.OK, None, None, lag_seconds=1e6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind_named(kind).highs is not None])
def test_twenty_objects_take_as_many_queries_as_one(made: Monitored, kind: str) -> None:
    def queries(count: int) -> int:
        seen: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            seen.append(statement)

        sa.event.listen(made.store._engine, "before_cursor_execute", note)
        found = made.store.read(lambda c: usual_lags(c, [shown(kind, f"u{number}") for number in range(count)]))
        sa.event.remove(made.store._engine, "before_cursor_execute", note)
        assert found == {}
        return len(seen)

    assert queries(1) == queries(20) > 0
    in_time = [replace(shown(kind, "u"), lag_seconds=3599.0), replace(shown(kind, "u"), lag_seconds=None)]
    assert made.store.read(lambda c: usual_lags(c, in_time)) == {}


def test_the_docs_have_every_reason_and_each_kind_with_a_usual_lag() -> None:
    text = DOCS.read_text()
    section = text[text.index("### What needs attention") : text.index("### Act on the page")]
    first = re.findall(r"(?m)^\| ([^|]+) \|", section)
    assert first[:8] == ["word", "---", *(one.words for one in REASONS.values())]
    kinds = {one.replace(" ", "_") for one in first[10:]}
    assert kinds == {kind for kind in KINDS if kind_named(kind).highs is not None}
    assert {one.group for one in REASONS.values()} == RANKS.keys()
