"""A template renders None as the text "None". That leaves the argument out, and names no stream, group or table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.guarantees.world import World
from tidemark.errors import ExternalTableNotFound
from tidemark.model.streams import StreamMode
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.operators.external_tables import RefreshExternalTableOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.sensors.consumer_groups import ConsumerGroupStaleSensor
from tidemark.sensors.stale import StreamStaleSensor
from tidemark.streams.worker.streams import get_stream

pytestmark = [pytest.mark.airflow, pytest.mark.parametrize("none", ["None", " none ", ""])]


@pytest.fixture
def world(tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Stream `s` on an empty table."""
    made = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    made.stream("s")
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", made.url)
    return made


def test_alarms_look_at_all_streams(none: str, world: World) -> None:
    context: Any = {}
    sensor = StreamStaleSensor(task_id="it", stream=none, hours_left=10**6)
    assert [one["stream"] for one in sensor.poke(context).xcom_value] == ["s"]
    assert sensor.trigger(conn_id="tidemark_default", end="2026-01-31T12:00:00+00:00").names is None
    report = StaleStreamNotifier(stream=none, hours_left=10**6).report(context)
    assert report is not None
    assert [one.stream for one in report["stale_streams"]] == ["s"]


def test_an_alarm_looks_at_all_consumer_groups(none: str, world: World) -> None:
    context: Any = {}
    assert not ConsumerGroupStaleSensor(task_id="it", change_stream=none, consumer_group=none).poke(context).is_done


def test_a_refresh_keeps_the_definition_of_an_external_table(none: str) -> None:
    left_out = dict.fromkeys(("location", "file_format", "schema", "pattern"), none)
    request = RefreshExternalTableOperator(task_id="it", external_table="f", **left_out)._request()
    assert [getattr(request, name) for name in left_out] == [None, None, None, None]


def test_a_rebased_stream_keeps_to_its_external_table(none: str, world: World) -> None:
    old = replace(get_stream(world.store, "s"), mode=StreamMode.INSERT_ONLY)
    with pytest.raises(ExternalTableNotFound, match=old.source.name):
        RebaseStreamOperator(task_id="it", stream="s", why="moved", on=none)._table(old)
