"""The sensor and the notifier of channels: who is behind or silent, by the table's log alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests.unit.lake.delta_directories import born, commit
from tidemark.channels.planning.names import domain_of
from tidemark.channels.planning.records import opened, record_text
from tidemark.errors import ChannelNotFound, InvalidArgument, TableNotFound
from tidemark.notifications.idle_channel import ChannelIdleNotifier
from tidemark.sensors.channels import ChannelLagSensor

pytestmark = pytest.mark.airflow


@pytest.fixture
def landing(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table without channels, in a lake of its own."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    table = tmp_path / "shop" / "landed"
    born(table)
    return table


def committed(table: Path, version: int, key: str, token: str, *, ago: timedelta, table_id: str = "id-1") -> None:
    """A commit of the channel with a token, some time ago."""
    record = opened(None, table_id, by="writer", token=token, now=datetime.now(UTC) - ago)
    domain = {"domain": domain_of(key), "configuration": record_text(record), "removed": False}
    commit(table, version, {"domainMetadata": domain})


def look(**given: Any) -> Any:
    return ChannelLagSensor(task_id="lag", **{"table": "shop.landed", "lag_seconds": 60, **given}).poke({})  # type: ignore[typeddict-item]


def test_a_table_is_fresh_if_all_its_channels_are_and_behind_if_one_is_not(landing: Path) -> None:
    committed(landing, 1, "A", "1", ago=timedelta(seconds=1))
    committed(landing, 2, "B", "7", ago=timedelta(seconds=2))
    assert (look().is_done, look(below=True).is_done) == (False, True)
    committed(landing, 3, "B", "8", ago=timedelta(hours=1))
    assert (look().is_done, look(below=True).is_done) == (True, False)
    assert (look(channels="a").is_done, look(channels=["a"], below="true").is_done) == (False, True)
    assert (look(lag_seconds="7200").is_done, look(lag_seconds=7200, below=True).is_done) == (False, True)


def test_the_result_names_every_channel_with_its_token_and_lag(landing: Path) -> None:
    committed(landing, 1, "A", "1", ago=timedelta(hours=2))
    committed(landing, 2, "it's b", "7", ago=timedelta(hours=1))
    found = look(channels=['"it\'s b"', "a"]).xcom_value
    assert [(one["channel"], one["offset_token"]) for one in found["channels"]] == [("A", "1"), ("it's b", "7")]
    assert [round(one["lag_seconds"] / 60) for one in found["channels"]] == [120, 60]
    assert found["lag_seconds"] == found["channels"][0]["lag_seconds"]


def test_a_table_without_channels_of_its_own_is_behind(landing: Path) -> None:
    assert (look().is_done, look(below=True).is_done) == (True, False)
    committed(landing, 1, "A", "1", ago=timedelta(), table_id="the table that was copied")
    assert look(below=True).is_done is False
    assert look().xcom_value == {"table": "shop.landed", "lag_seconds": None, "channels": []}


def test_a_clock_that_is_ahead_makes_no_lag(landing: Path) -> None:
    committed(landing, 1, "A", "1", ago=-timedelta(hours=1))
    assert look().xcom_value["lag_seconds"] == 0.0


def test_a_typo_is_an_error_that_names_what_exists(landing: Path) -> None:
    committed(landing, 1, "A", "1", ago=timedelta())
    with pytest.raises(ChannelNotFound, match="These exist: A"):
        look(channels="b")
    with pytest.raises(TableNotFound):
        look(table="shop.nowhere")


def notifier(tmp_path: Path, text: str, **given: Any) -> tuple[ChannelIdleNotifier, Path]:
    file = tmp_path / "told"
    told_to = {"tell": "tests.airflow.notified.KeepsIt", "tell_kwargs": {"file": str(file), "text": text}}
    return ChannelIdleNotifier(**told_to, **given), file


@pytest.mark.parametrize("tables", [None, "shop.landed", ["shop.landed"]])
def test_silent_channels_are_reported_by_another_notifier_the_longest_first(
    landing: Path, tmp_path: Path, tables: Any
) -> None:
    born(tmp_path / "shop" / "other")
    committed(landing, 1, "A", "1", ago=timedelta(hours=30))
    committed(landing, 2, "B", "2", ago=timedelta(hours=50))
    committed(landing, 3, "C", "3", ago=timedelta(hours=1))
    text = "{{ idle_channels | map(attribute='channel') | join(',') }}\n{{ idle_message }}"
    watch, file = notifier(tmp_path, text, tables=tables)
    watch({})
    names, *lines = file.read_text().splitlines()
    assert names == "B,A"
    assert lines[0] == (
        "Channel B of shop.landed has committed nothing for 50.0 hours."
        " Its offset token is '2', and its last writer writer."
    )
    file.unlink()
    async_to_sync(watch.async_notify)({})
    assert file.read_text().splitlines()[1:] == lines


def test_nothing_is_reported_if_no_channel_is_idle_for_so_long(landing: Path, tmp_path: Path) -> None:
    committed(landing, 1, "A", "1", ago=timedelta(hours=30))
    watch, file = notifier(tmp_path, "{{ idle_message }}", idle_hours="{{ hours }}")
    watch({"hours": 31})
    assert not file.exists()


def test_a_notifier_that_cannot_report_says_why(landing: Path, tmp_path: Path) -> None:
    committed(landing, 1, "A", "1", ago=timedelta(hours=30))
    with pytest.raises(TableNotFound):
        ChannelIdleNotifier(tables="shop.nowhere")({})
    with pytest.raises(InvalidArgument, match="not a notifier class"):
        ChannelIdleNotifier(tell="pathlib.Path")({})
