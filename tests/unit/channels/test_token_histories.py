"""The offset tokens of channels over time: the newest commits of their history, read without Spark."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.channels.token_table import START, Tokens
from tests.unit.lake.delta_directories import add, born, remove
from tidemark.channels.worker.token_histories import CHANNELS, COMMITS, LANDING_HISTORY, tokens_of
from tidemark.errors import CorruptLog
from tidemark.model.streams import TableRef
from tidemark.streams.worker.sources import open_table

HTML = "<IMG SRC=X ONERROR=ALERT(1)>"


@pytest.fixture
def made(tmp_path: Path) -> Tokens:
    born(tmp_path / "landing")
    return Tokens(tmp_path / "landing")


def of(made: Tokens) -> TableRef:
    return TableRef("shop.landing", made.landing.as_uri(), "id-1")


def test_tokens_come_newest_first_with_the_figures_of_their_minute(made: Tokens) -> None:
    made.minute(A="1", B=None)
    made.minute(A="9", B="file_7/12")
    found = tokens_of(of(made), open_table)
    assert [(row.channel, row.token) for row in found] == [("B", "file_7/12"), ("A", "9"), ("B", None), ("A", "1")]
    assert [row.at for row in found] == [START + timedelta(minutes=1)] * 2 + [START] * 2
    assert (found[0].rows_inserted, found[0].rows_error_count, found[0].latency_ms) == (20, 2, 1500)


def test_a_table_without_a_history_has_no_tokens(made: Tokens) -> None:
    assert tokens_of(of(made), open_table) == ()
    assert LANDING_HISTORY.parts((), 200) == ()


def test_only_the_newest_commits_are_read_and_each_file_once(made: Tokens) -> None:
    for number in range(COMMITS + 5):
        made.minute(A=str(number))
    found = tokens_of(of(made), open_table)
    assert [row.token for row in found] == [str(number) for number in range(COMMITS + 4, 4, -1)]
    for file in made.history.glob("*.parquet"):
        file.unlink()
    made.minute(A="last")
    assert [row.token for row in tokens_of(of(made), open_table)][:2] == ["last", str(COMMITS + 4)]


def test_files_that_were_made_large_or_removed_tell_nothing_twice(made: Tokens) -> None:
    made.minute(A="1")
    made.minute(A="2")
    first, second = sorted(file.name for file in made.history.glob("*.parquet"))
    large = shutil.copy(made.history / second, made.history / "large.parquet")
    made.write(remove(first, data_change=False), add(large.name, data_change=False))
    (made.history / first).unlink()
    assert [row.token for row in tokens_of(of(made), open_table)] == ["2"]


@pytest.mark.parametrize("content", [b"PAR1 and no more", b"PAR1" + b"\xff" * 40 + b"\x28\0\0\0PAR1"])
def test_a_file_that_is_no_parquet_is_named(made: Tokens, content: bytes) -> None:
    made.write(add("garbled.parquet"))
    (made.history / "garbled.parquet").write_bytes(content)
    with pytest.raises(CorruptLog, match=r"garbled\.parquet"):
        tokens_of(of(made), open_table)


def test_each_channel_is_a_part_by_its_name_and_numbers_are_drawn(made: Tokens) -> None:
    made.minute(**{HTML: "7", "B": "x", "C": "99999999999999999999"})
    parts = LANDING_HISTORY.parts(tokens_of(of(made), open_table), 200)
    assert [shown.part.words for shown in parts] == [
        f"Channel {name}, the newest minute first" for name in (HTML, "B", "C")
    ]
    assert [shown.part.name for shown in parts] == ["channel_0", "channel_1", "channel_2"]
    assert [shown.points[0].values["number"] for shown in parts] == [7, None, None]
    assert all(shown.points[0].values["at"] == START for shown in parts)
    assert set(parts[0].points[0].values) == {one.name for one in parts[0].part.fields}


def test_of_many_channels_those_that_committed_last_are_there(made: Tokens) -> None:
    made.minute(**{f"OLD{number:03}": "1" for number in range(2000)})
    made.minute(**{f"NEW{number:03}": "1" for number in range(5)})
    parts = LANDING_HISTORY.parts(tokens_of(of(made), open_table), 1)
    assert len(parts) == CHANNELS
    assert sum("NEW" in shown.part.words for shown in parts) == 5


def test_times_without_a_zone_are_utc(made: Tokens) -> None:
    made.minute(zone=False, A="1")
    assert tokens_of(of(made), open_table)[0].at == datetime(2026, 11, 29, 8, tzinfo=UTC)
