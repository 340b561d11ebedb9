"""Whatever another writer says of its commit, its files or the table: it is not ours, and stops nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, commit, metadata, remove
from tidemark.change_streams.planning.commit_facts import NOTHING_SAID, commit_facts
from tidemark.changes.planning.sets.forms import physical_rows
from tidemark.delivery.model.marks import ENVELOPE, SPLIT, Mark, MarkKind, parse_mark, parse_split
from tidemark.delivery.planning.delivery import Finding, judge, row_counts
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.event_logs import MARK as EVENTS_MARK
from tidemark.lake.event_logs import batches, capture_app_id, parse_batch
from tidemark.lake.log_paths import MARK as CAPTURE_MARK
from tidemark.lake.log_paths import LogEntry, entries, has_batch
from tidemark.model.file_statistics import exact_statistics
from tidemark.model.foreign_json import exact_number, foreign_object, parsed, whole_number
from tidemark.model.streams import TableRef
from tidemark.model.table_log import AddFile, TableState
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.marks import ENVELOPE as OBJECT_ENVELOPE
from tidemark.replication.model.marks import object_app_id, parse_object_mark
from tidemark.replication.planning.debezium import landed, landed_document
from tidemark.streams.planning.alterations import alterations
from tidemark.streams.planning.backlog import change_records, operation_of
from tidemark.streams.planning.staleness import (
    FILE_RETENTION,
    FOR_EVER,
    OWN_RETENTION,
    Stretched,
    file_retention,
    stretched_from,
)
from tidemark.streams.worker.targets import retention
from tidemark.streams.worker.unread_commits import CommitCache, UnreadCommits

APP = "tidemark/uid/1"
OURS = Mark("store", (), 1, "digest", APP, 7, MarkKind.WRITE)
PLAIN = json.loads(OURS.to_text())[ENVELOPE]
STREAM = "11111111-2222-3333-4444-555555555555"
NAMES = (ENVELOPE, SPLIT, OBJECT_ENVELOPE, EVENTS_MARK, CAPTURE_MARK, FILE_RETENTION)
ODD = {
    "deep lists": "[" * 100_000,
    "deep objects": '{"tidemark":' * 20_000 + "1" + "}" * 20_000,
    "a number": "5",
    "a list": "[1]",
    "a text": '"x"',
    "null": "null",
    "no JSON": "by hand",
    "empty": "",
    "huge": "9" * 5_000,
    "infinite": "1e999",
    "half a character": '{"a": "\ud800"}',
    **{f"{kind} under our names": json.dumps(dict.fromkeys(NAMES, value)) for kind, value in {
        "a number": 5, "null": None, "a list": [1], "a text": "x", "an empty object": {}, "infinity": float("inf"),
    }.items()},
    "deep under our names": "{" + ", ".join(f'"{name}": {"[" * 500 + "]" * 500}' for name in NAMES) + "}",
    "a mark of other types": json.dumps({ENVELOPE: {**PLAIN, "txn_version": "9"}}),
    "a mark with windows of other types": json.dumps({ENVELOPE: {**PLAIN, "windows": 5}}),
    "a split of no time": json.dumps({SPLIT: {"version": 1, "at": 5}}),
    "a note of other types": json.dumps({FILE_RETENTION: {"own": 5, "now": "interval 1 day"}}),
}  # fmt: skip


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_no_text_is_ours_that_we_did_not_write(text: str) -> None:
    read = (parse_mark, parse_split, parse_object_mark, parse_batch)
    assert [found(text) for found in read] == [None] * 4
    assert (commit_facts(text), physical_rows(text)) == (NOTHING_SAID, None)
    configuration = {OWN_RETENTION: text, FILE_RETENTION: "interval 1 day"}
    assert stretched_from(configuration) == {}
    wanted = {FILE_RETENTION: None, "delta.logRetentionDuration": "interval 2 days", OWN_RETENTION: "{}"}
    assert alterations(configuration, wanted)
    assert isinstance(foreign_object(text), dict)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_a_log_with_such_texts_in_every_place_is_read(tmp_path: Path, text: str) -> None:
    log = odd_log(tmp_path, text)
    for found in (*log.commits(-1, log.head()), *log.commits(1, log.head())):
        assert (change_records(found) >= 0, operation_of(found) != "") == (True, True)
        assert row_counts(found) in ({}, {"updated": 5})
        json.dumps(found.operation_parameters).encode()
    assert not log.has_changes(0, 1)
    assert [entry.mark for entry in entries(log, STREAM)] == [{}]
    assert list(entries(log, "another")) == []
    assert has_batch(log, STREAM, 3)  # a number of ours that nobody can explain is taken for used, not for free
    assert list(batches(log, capture_app_id("store", "r"))) == []
    target = Target(TableRef("t", str(tmp_path), ""), "store", "o")
    assert target.newest() is None
    with CommitCache().after(0, log, log.state()) as unread:
        assert isinstance(unread, UnreadCommits)
        parts: Callable[[TableState, Any], Any] = lambda _, commits: [() for _ in commits]  # noqa: E731
        assert len(unread.parts("x", parts)) == 3


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_our_number_with_a_text_that_is_not_ours_is_foreign_and_never_free(tmp_path: Path, text: str) -> None:
    log = odd_log(tmp_path, text, txn={"appId": APP, "version": 7})
    found = judge(OURS, expected_id="id-1", found_id="id-1", commits=log.commits(0, log.head()), version_at=lambda _: 0)
    assert found.finding is Finding.FOREIGN


RESTORED: dict[str, tuple[Any, Finding]] = {
    "after it": ({"version": 2, "timestamp": None}, Finding.DELIVERED),
    "after it, in words": ({"version": "2"}, Finding.DELIVERED),
    "before it": ({"version": 0}, Finding.REWOUND),
    "to no number": ({"version": "latest"}, Finding.REWOUND),
    "to a part of one": ({"version": 2.5}, Finding.REWOUND),
    "to a negative one": ({"version": -2}, Finding.REWOUND),
    "to an object": ({"version": {"number": 2}}, Finding.REWOUND),
    "to digits of others": ({"version": "²"}, Finding.REWOUND),
    "to a huge one": ({"version": "9" * 5_000}, Finding.REWOUND),
    "to one that is not there": ({"version": 99}, Finding.REWOUND),
    "to a time": ({"timestamp": "2026-01-02 00:00:00"}, Finding.DELIVERED),
    "to no time": ({"timestamp": "yesterday"}, Finding.REWOUND),
    "to a time before all": ({"timestamp": "0001-01-01 00:00:00+14:00"}, Finding.REWOUND),
    "to nothing": ({}, Finding.REWOUND),
    "with a text": ("version 2", Finding.REWOUND),
    "with a list": ([2], Finding.REWOUND),
}


@pytest.mark.parametrize(("said", "finding"), RESTORED.values(), ids=RESTORED)
def test_a_restore_that_does_not_say_where_to_took_our_write_back(tmp_path: Path, said: Any, finding: Finding) -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    commit(tmp_path, 0, PROTOCOL, metadata(), at=day)
    written = {"operation": "WRITE", "userMetadata": OURS.to_text()}
    commit(tmp_path, 1, {"commitInfo": written}, {"txn": {"appId": APP, "version": 7}}, at=day + timedelta(hours=1))
    commit(tmp_path, 2, add("a"), at=day + timedelta(hours=2))
    restore = {"operation": "RESTORE", "operationParameters": said}
    commit(tmp_path, 3, {"commitInfo": restore}, at=day + timedelta(days=2))
    log = DeltaLog.open(str(tmp_path))
    found = judge(
        OURS, expected_id="id-1", found_id="id-1", commits=log.commits(0, log.head()), version_at=log.version_at
    )
    assert found.finding is finding


def test_numbers_are_plain_digits_of_64_bits() -> None:
    assert [whole_number(text) for text in ("0", "17", "9" * 18)] == [0, 17, 10**18 - 1]
    others = ("", "-1", "1.0", "1_0", " 1", "²", "٣", "9" * 19, "inf", None, 5)
    assert [whole_number(text) for text in others] == [None] * len(others)


BEYOND = ("1e999999999", "-1E-999999999", "0e-999999999", f"1e{'9' * 30}", f"[1.5e-{'9' * 30}]")


@pytest.mark.parametrize("text", BEYOND)
def test_a_number_beyond_all_bounds_is_no_number_and_fills_no_memory(text: str) -> None:
    with pytest.raises(ValueError, match="beyond all bounds"):
        parsed(text, number=exact_number)
    with pytest.raises(ValueError, match="beyond all bounds"):
        landed(f'{{"op": "c", "after": {{"n": {text}}}}}')
    with pytest.raises(ValueError, match="beyond all bounds"):
        landed_document({"value": f'{{"n": {text}}}'})
    stats = f'{{"numRecords": {text}}}'
    assert exact_statistics(AddFile("f", 1, {}, 0, True, stats, None, None, None)) is None


def test_numbers_of_any_source_have_each_digit() -> None:
    wide = "9" * 131_072 + "." + "1" * 16_383
    assert str(parsed(wide, number=exact_number)) == wide
    assert parsed("[NaN, 1e-400]", number=exact_number)[1] == Decimal("1e-400")


def test_durations_of_too_many_digits_are_for_ever() -> None:
    long = f"interval {'9' * 5_000} days"
    assert file_retention({FILE_RETENTION: long}) == FOR_EVER
    assert retention(long) == retention(f"interval {'9' * 30} days") == timedelta.max


def test_what_is_ours_is_read_as_it_was_written() -> None:
    assert parse_mark(OURS.to_text()) == OURS
    note = {FILE_RETENTION: {"own": None, "now": "interval 1 day"}, "delta.x": {"own": "a", "now": "b"}}
    configuration = {OWN_RETENTION: json.dumps(note), FILE_RETENTION: "interval 1 day"}
    assert stretched_from(configuration) == {FILE_RETENTION: Stretched(None, "interval 1 day")}


def odd_log(table: Path, text: str, **txn: dict[str, Any]) -> DeltaLog:
    """A foreign commit says `text` wherever a writer may say something."""
    commit(table, 0, PROTOCOL, metadata(**{"tidemark.ownRetention": text.encode(errors="replace").decode()}))
    said = {"version": text, "timestamp": text, "defaultRetentionMillis": text, "numOutputRows": text}
    commit(table, 1, {"commitInfo": {"operation": "VACUUM START", "operationParameters": said, "userMetadata": text}})
    info = {"operation": "UPDATE", "operationMetrics": {"numUpdatedRows": text}, "userMetadata": text}
    uses = [{"txn": one} for one in txn.values()] or [
        {"txn": {"appId": app, "version": 4}}
        for app in (STREAM, capture_app_id("store", "r"), object_app_id("store", "o"))
    ]
    commit(table, 2, {"commitInfo": info}, add("a", stats=text), add("b", stats=json.loads("[1]")), *uses)
    commit(table, 3, {"commitInfo": {"operation": "\ud800", "userMetadata": {"a": 1}}}, remove("a"))
    (table / "_delta_log" / f"{3:020d}.crc").write_text(text.encode(errors="replace").decode())
    return DeltaLog.open(str(table))


def test_the_newest_entry_of_a_change_log_is_one_that_was_written(tmp_path: Path) -> None:
    commit(tmp_path, 0, PROTOCOL, metadata())
    mark = {"attempt": "a", "batch": 0, "digest": "d"}
    info = {"operation": "WRITE", "userMetadata": json.dumps({CAPTURE_MARK: mark})}
    commit(tmp_path, 1, {"commitInfo": info}, {"txn": {"appId": STREAM, "version": 1}})
    assert next(entries(DeltaLog.open(str(tmp_path)), STREAM)) == LogEntry(0, mark)
