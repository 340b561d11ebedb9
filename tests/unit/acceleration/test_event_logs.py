"""Event logs in every form that Spark writes, and those that nobody should have written."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.acceleration.made_logs import BEGAN, events, lines
from tidemark.acceleration.planning.estimate import estimate
from tidemark.acceleration.planning.events import application_of
from tidemark.acceleration.worker.event_logs import EventLog, find_event_log, read_application
from tidemark.errors import EventLogNotFound, EventLogUnreadable, InvalidArgument

TASKS = (300, 200, 100, 400)


def zstd(content: bytes, frame: int = 1000) -> bytes:
    """Frames one after the other, as a file has them that was continued."""
    parts = (content[at : at + frame] for at in range(0, len(content), frame))
    return b"".join(bytes(pa.Codec("zstd").compress(part, asbytes=True)) for part in parts)


def lz4(content: bytes, block: int = 1000) -> bytes:
    """Blocks as lz4-java writes them: magic, method and level, both sizes, a checksum; an empty one ends the stream."""
    found = bytearray()
    for at in range(0, len(content), block):
        plain = content[at : at + block]
        packed = bytes(pa.Codec("lz4_raw").compress(plain, asbytes=True))
        method, stored = (0x20, packed) if len(packed) < len(plain) else (0x10, plain)
        sizes = len(stored).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
        found += b"LZ4Block" + bytes([method | 6]) + sizes + b"\0\0\0\0" + stored
    return bytes(found + b"LZ4Block\x16" + bytes(12))


def snappy(content: bytes, block: int = 1000) -> bytes:
    """Blocks as snappy-java writes them, behind a header of sixteen bytes."""
    found = bytearray(b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2)
    for at in range(0, len(content), block):
        packed = bytes(pa.Codec("snappy").compress(content[at : at + block], asbytes=True))
        found += len(packed).to_bytes(4, "big") + packed
    return bytes(found)


FORMS = {"": bytes, ".zstd": zstd, ".lz4": lz4, ".snappy": snappy}


def put(place: Path, content: bytes) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


@pytest.mark.parametrize("suffix", FORMS)
def test_a_log_is_found_by_its_application_and_read_in_each_form(tmp_path: Path, suffix: str) -> None:
    put(tmp_path / f"app-1{suffix}", FORMS[suffix](lines(TASKS, slots=2)))
    put(tmp_path / "app-10", b"another one")
    found = read_application(find_event_log("app-1", str(tmp_path)))
    assert (found.id, found.name, found.seconds) == ("app-1", "made", 0.9)
    (stage,) = found.stages
    assert (stage.id, stage.job, stage.execution, stage.tail) == (5, 3, 7, 0)
    assert sorted(stage.tasks) == sorted(TASKS)
    assert [(one.slots, one.at) for one in found.executors] == [(2, BEGAN)]
    assert [one.id for one in found.executions] == [7]


@pytest.mark.parametrize("suffix", FORMS)
def test_the_same_log_by_its_path(tmp_path: Path, suffix: str) -> None:
    path = put(tmp_path / f"made by hand{suffix}", FORMS[suffix](lines(TASKS)))
    assert read_application(find_event_log(str(path), None)).id == "app-1"


def test_rolled_files_are_read_in_the_order_of_their_numbers_from_the_last_compact_one(tmp_path: Path) -> None:
    whole = lines(TASKS).splitlines(keepends=True)
    rolled = tmp_path / "eventlog_v2_app-1"
    put(rolled / "appstatus_app-1", b"")
    put(rolled / "events_1_app-1.zstd", zstd(b"what the compact file has replaced"))
    put(rolled / "events_9_app-1.zstd.compact", zstd(b"".join(whole[:4])))
    put(rolled / "events_9_app-1.zstd", zstd(b"replaced, too"))
    put(rolled / "events_10_app-1.zstd", zstd(b"".join(whole[4:9])))
    put(rolled / "events_11_app-1.zstd", zstd(b"".join(whole[9:])))
    for of in ("app-1", str(rolled)):
        found = read_application(find_event_log(of, str(tmp_path)))
        assert found.ended is not None
        assert len(found.stages[0].tasks) == len(TASKS)


def test_the_last_attempt_counts_and_a_finished_one_before_one_in_progress(tmp_path: Path) -> None:
    for name in ("app-1_1", "app-1_2.inprogress", "app-1_2", "app-1_x", "app-11_9"):
        put(tmp_path / name, b"")
    assert find_event_log("app-1", str(tmp_path)).files == ("app-1_2",)


def test_an_application_is_found_by_the_name_that_spark_gives_its_file(tmp_path: Path) -> None:
    put(tmp_path / "local-1_5-a", lines(TASKS))
    assert find_event_log("local-1.5:A", str(tmp_path)).files == ("local-1_5-a",)


def test_an_id_leads_nowhere_but_into_its_directory(tmp_path: Path) -> None:
    put(tmp_path / "app-1", lines(TASKS))
    (tmp_path / "logs").mkdir()
    with pytest.raises(EventLogNotFound) as missing:
        find_event_log("..", str(tmp_path / "logs"))
    assert "spark.eventLog.enabled" in str(missing.value)
    with pytest.raises(EventLogNotFound):
        find_event_log("app-1", str(tmp_path / "not there"))
    with pytest.raises(EventLogNotFound):
        find_event_log(str(tmp_path / "app-2"), None)
    with pytest.raises(InvalidArgument, match=r"spark\.eventLog\.dir"):
        find_event_log("app-1", None)


def test_a_cut_last_line_is_left_out_and_a_malformed_one_before_it_is_an_error(tmp_path: Path) -> None:
    whole = lines(TASKS)
    cut = put(tmp_path / "cut", whole[:-20])
    assert read_application(find_event_log(str(cut), None)).ended is None
    broken = whole.splitlines(keepends=True)
    broken[3] = b'{"Event":"SparkListenerBlockManag\n'
    bad = put(tmp_path / "bad", b"".join(broken))
    with pytest.raises(EventLogUnreadable) as error:
        read_application(find_event_log(str(bad), None))
    assert (error.value.facts["line"], error.value.facts["path"]) == (4, f"file://{bad}")


@pytest.mark.parametrize("suffix", [".zstd", ".lz4", ".snappy"])
def test_a_log_whose_writer_was_killed_is_read_up_to_its_end(tmp_path: Path, suffix: str) -> None:
    content = FORMS[suffix](lines([100] * 400))
    path = put(tmp_path / f"app-1{suffix}.inprogress", content[: len(content) * 2 // 3])
    found = read_application(find_event_log(str(path), None))
    assert found.id == "app-1"
    assert found.ended is None


@pytest.mark.parametrize("suffix", [".zstd", ".lz4", ".snappy"])
def test_a_file_of_another_form_than_its_name_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = put(tmp_path / f"app-1{suffix}", b"\xff" * 4096)
    with pytest.raises(EventLogUnreadable):
        read_application(find_event_log(str(path), None))


def test_a_codec_that_cannot_be_read_and_a_text_without_an_application_are_named(tmp_path: Path) -> None:
    lzf = put(tmp_path / "app-1.lzf", b"ZV")
    with pytest.raises(EventLogUnreadable, match="its codec lzf cannot be read"):
        read_application(find_event_log(str(lzf), None))
    other = put(tmp_path / "other", b'{"Event":"SparkListenerLogStart"}\n[]\n1\n"text"\nnull\n')
    with pytest.raises(EventLogUnreadable, match="no start of an application"):
        read_application(find_event_log(str(other), None))


def test_a_line_that_is_too_long_is_left_out_and_counted(tmp_path: Path) -> None:
    first, rest = lines(TASKS).split(b"\n", 1)
    path = put(tmp_path / "app-1", first + b"\n" + b'{"Event":"' + b"x" * 100_000 + b'"}\n' + rest)
    found = read_application(find_event_log(str(path), None), longest_line=10_000)
    assert found.left_out == 1
    assert len(found.stages[0].tasks) == len(TASKS)


def test_memory_grows_with_tasks_and_not_with_the_log(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    plan = b'{"Event":"Other","plan":"' + b"x" * 50_000 + b'"}\n'
    with path.open("wb") as file:
        head, tail = lines(TASKS).split(b"\n", 3)[:3], lines(TASKS).split(b"\n", 3)[3]
        file.write(b"\n".join(head) + b"\n")
        for _ in range(1000):
            file.write(plan)
        file.write(tail)
    assert path.stat().st_size > 50_000_000
    log = EventLog(f"file://{tmp_path}", ("app-1",))
    tracemalloc.start()
    try:
        read_application(log)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


ODD = [None, True, -1, 10**30, 1.5, float("inf"), "", "x", [], {}, [{}], [None], {"a": None}, {"Stage ID": {}}]


@given(st.data())
def test_events_of_another_form_are_left_out(data: st.DataObject) -> None:
    """Any value of any event may be another one: the rest of the log is still read."""
    whole = list(events(TASKS))
    place = data.draw(st.integers(2, len(whole) - 1))
    name = data.draw(st.sampled_from(sorted(whole[place])))
    whole[place] = {**whole[place], name: data.draw(st.sampled_from(ODD))}
    found = application_of(json.loads(json.dumps(one)) for one in whole)
    assert found is not None
    assert found.id == "app-1"


def test_an_end_that_no_calendar_has_is_none() -> None:
    whole = list(events(TASKS))
    found = application_of([*whole[:-1], {**whole[-1], "Timestamp": 10**18}])
    assert found is not None
    assert "has no end" in estimate(found, now=datetime(2026, 1, 1, tzinfo=UTC)).reason


def test_a_failed_task_and_a_second_attempt_of_a_stage_count() -> None:
    whole = list(events(TASKS))
    completed = next(one for one in whole if one["Event"] == "SparkListenerStageCompleted")
    info = {**completed["Stage Info"], "Stage Attempt ID": 1}
    task = {"Task ID": 9, "Launch Time": BEGAN + 1100, "Finish Time": BEGAN + 1200, "Failed": True}
    again = [
        {"Event": "SparkListenerTaskEnd", "Stage ID": 5, "Stage Attempt ID": 1, "Task Info": task},
        {**completed, "Stage Info": info},
    ]
    found = application_of([*whole[:-1], *again, whole[-1]])
    assert found is not None
    assert [(one.attempt, len(one.tasks)) for one in found.stages] == [(0, 4), (1, 1)]
