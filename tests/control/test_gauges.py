"""The gauges of all objects, by a store with objects in every state, and by the logs of its streams. No Spark."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.airflow.needing import IN_THE_STORE, Needing
from tidemark.control.object_kinds import KINDS, Severity
from tidemark.control.object_list import ObjectsWish, show_all
from tidemark.model.readings import Reading
from tidemark.streams.worker.gauges import Counts, look_for_gauges, readings_of
from tidemark.streams.worker.object_states import judged


@pytest.fixture(scope="module")
def needing(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("needing")).fill()


@pytest.fixture(scope="module")
def found(needing: Needing) -> tuple[Reading, ...]:
    return look_for_gauges(needing.store, needing.monitored.world.runtime.tables, within=timedelta(hours=1))


def gauge(found: tuple[Reading, ...], name: str) -> dict[tuple[str, ...], float]:
    told = [(tuple(one.tags.values()), one.value) for one in found if one.name == name]
    assert len(told) == len(dict(told))
    return dict(told)


def test_severities_are_those_that_store_and_logs_say(found: tuple[Reading, ...]) -> None:
    ranks = gauge(found, "object_severity")
    assert len(ranks) == 21
    for need, kind, name in IN_THE_STORE:
        wanted = {"failed": {3}, "warning": {2}}.get(need, {0, 1, 2, 3})
        assert ranks[kind, name] in wanted, name
    assert ranks["stream", "returns"] == 3  # only its log says so
    assert ranks["stream", "customers"] == 2
    assert ranks["stream", "payments"] == 0


def test_hours_to_stale_are_those_of_streams_whose_logs_can_be_read(found: tuple[Reading, ...]) -> None:
    hours = gauge(found, "object_hours_to_stale")
    assert ("stream", "returns") not in hours
    assert hours["stream", "stock"] == 0
    assert 0 < hours["stream", "customers"] < 24 < hours["stream", "order_changes"] < 24 * 7


def test_lags_are_in_seconds_and_in_their_own_unit(found: tuple[Reading, ...]) -> None:
    seconds, amounts = gauge(found, "object_lag_seconds"), gauge(found, "object_lag_amount")
    assert seconds["stream", "payments"] == 0
    assert seconds["stream", "order_changes"] == 2 * 3600
    assert amounts["stream", "order_changes", "versions"] == 5
    assert seconds["replication", "shop"] >= 0


def test_every_kind_and_severity_is_counted_so_that_no_count_stays_as_it_was(found: tuple[Reading, ...]) -> None:
    counted = gauge(found, "objects")
    assert counted.keys() == {(kind, severity.value) for kind in KINDS for severity in Severity}
    assert sum(counted.values()) == 21
    assert counted["stream", "failed"] == 3
    assert counted["clustered_table", "ok"] == 0
    assert gauge(found, "needs").keys() == {("failed",), ("warning",), ("stopped",)}
    assert gauge(found, "needs")["failed",] >= 4
    assert gauge(found, "objects_not_looked_at") == {("stream",): 0, ("landing_table",): 0}
    (emitted,) = gauge(found, "emitted_at").values()
    assert emitted > 1_700_000_000


def test_a_stream_whose_log_has_not_answered_is_neither_well_nor_late(needing: Needing) -> None:
    now = needing.store.clock()
    told = needing.store.read(lambda connection: show_all(connection, ObjectsWish(), now=now))
    found = tuple(readings_of(judged(told, {}, {}, now), {}, Counts(), now))
    ranks, seconds = gauge(found, "object_severity"), gauge(found, "object_lag_seconds")
    assert {key: rank for key, rank in ranks.items() if key[0] == "stream"} == {
        ("stream", "clicks"): 3, ("stream", "stock"): 3,
    }  # fmt: skip
    assert [key for key in seconds if key[0] == "stream"] == []
    assert seconds["replication", "shop"] >= 0
    assert gauge(found, "objects")["stream", "ok"] == 0
