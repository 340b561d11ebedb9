"""R88: before a table is vacuumed, all live streams that read it are asked for, and nothing is moved by that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.guarantees.world import START, World
from tidemark.control.store import ControlStore
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.retention import VacuumPlan
from tidemark.streams.planning.staleness import EXTENSION, FILE_RETENTION, Staleness
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import create_stream, drop_stream, get_stream
from tidemark.streams.worker.vacuum import plan_table_vacuum

DAY = timedelta(days=1)


@pytest.fixture
def filled(world: World) -> World:
    """A file at version 1 of `source`, removed at version 2, nine days ago; `s` stands at version 0."""
    source = world.sources["source"]
    source.append()
    source.truncate(START.timestamp())
    for version in range(3):
        source.set_time(version, START.timestamp() + version)
    world.clock.go(9 * DAY)
    return world


def planned(world: World, name: str = "source", **how: object) -> VacuumPlan:
    table = world.sources[name]
    return plan_table_vacuum(world.store, TableRef(name, table.uri, table.table_id), open_table, **how)  # type: ignore[arg-type]


def test_the_lowest_offset_counts_and_a_dropped_stream_does_not(filled: World) -> None:
    filled.stream("later")
    plan = planned(filled)
    assert (plan.keep_after, [one.stream for one in plan.held_by]) == (0, ["s"])
    assert plan.settings[EXTENSION] == "interval 14 days"
    assert plan.settings[FILE_RETENTION] == "interval 14 days"
    assert (plan.kept.bytes_past_retention, plan.by_list) == (1, True)
    drop_stream(filled.store, "s", "test")
    assert (planned(filled).keep_after, planned(filled).held_by) == (2, ())  # of the other, which needs nothing yet


def test_a_stream_on_a_view_counts_for_each_of_its_tables_until_the_shortest_limit(filled: World) -> None:
    drop_stream(filled.store, "s", "test")
    query = ViewQuery(name="v", text="…", schema_json="{}", bases=("source", "other"), settings={}, digest="d1")
    tables = [TableRef(name, filled.sources[name].uri, filled.sources[name].table_id) for name in query.bases]
    bases = [BaseOffset(table, 0) for table in tables]
    source = TableRef("v", "", "d1")
    made = {"source": source, "mode": StreamMode.STANDARD, "at_version": 0, "who": "t", "view": query}
    create_stream(filled.store, name="v", view_bases=bases, **made)  # type: ignore[arg-type]
    assert planned(filled).held_by[0].until == filled.clock.now + 7 * DAY
    filled.sources["other"].configure(tidemark__maxDataExtension="interval 12 days")
    assert planned(filled).held_by[0].until == filled.clock.now + 12 * DAY
    filled.clock.go(12.5 * DAY)
    assert [one.stream for one in planned(filled).losing] == ["v"]
    assert planned(filled, "other").keep_after is None


def test_an_open_window_is_held_until_its_lease_and_job_have_ended(filled: World) -> None:
    filled.clock.go(5 * DAY - timedelta(minutes=5))
    filled.open("one")
    filled.clock.go(timedelta(minutes=9))
    assert planned(filled).keep_after == 0
    filled.clock.go(timedelta(minutes=9))
    assert (planned(filled).keep_after, len(planned(filled).losing)) == (None, 1)


def test_a_stream_on_a_table_made_anew_holds_nothing(filled: World) -> None:
    filled.source.replace()
    assert planned(filled).keep_after is None


def test_planning_writes_nothing_into_the_store(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a plan writes nothing")

    monkeypatch.setattr(ControlStore, "write", refused)
    assert planned(filled).keep_after == 0


def test_what_is_lost_and_what_is_kept_is_seen_in_log_and_storage(filled: World) -> None:
    """The net change of a file that came and went needs it not; that of appended rows does."""
    create_stream(
        filled.store,
        name="appended",
        source=get_stream(filled.store, "s").source,
        mode=StreamMode.APPEND_ONLY,
        at_version=0,
        who="test",
    )
    now = filled.clock.now
    net, appended = (status_of(get_stream(filled.store, name), open_table, now=now) for name in ("s", "appended"))
    assert (net.staleness(now), net.lost_version) == (Staleness.FORECAST, None)
    assert (appended.staleness(now), appended.lost_version) == (Staleness.STALE, 1)
    assert "VACUUM has removed files that the changes of version 1 need" in str(appended.problem)
    assert status_of(get_stream(filled.store, "appended"), open_table).problem is None  # nobody looked
    for file in filled.source._files(1):
        (filled.source.path / file).write_bytes(b"1")
    found = status_of(get_stream(filled.store, "appended"), open_table, now=now)
    assert (found.staleness(now), found.kept) == (Staleness.FRESH, net.kept)
    assert found.kept is not None
    assert (found.kept.files, found.kept.bytes, found.kept.bytes_past_retention) == (1, 1, 1)
