"""A directory of notification documents: read, acknowledged, put aside, and left while they are being written."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.object_store import BUCKET, running_object_store
from tidemark.errors import NotificationsUnreachable
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.notifications import Notification
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.status import ChannelFacts
from tidemark.pipes.worker.notification_directory import UNFINISHED_FOR, DirectoryChannel
from tidemark.pipes.worker.notified import NotifiedFiles, acknowledged_after, channel_facts, notified_files

LOAD = Load("db.t", "/lake/db/t", "file:///data/in")
PIPE = Pipe("uid", "p", "COPY INTO t FROM @s", "/q", True, "/notes", None, datetime.now(UTC))


class Notes:
    """A directory of documents, and its channel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.late = timedelta()
        self.channel = DirectoryChannel(str(path), clock=lambda: datetime.now(UTC) + self.late)

    def put(self, name: str, text: str | bytes) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())

    def announce(self, name: str, *files: str) -> None:
        self.put(name, json.dumps({"files": files}))

    def left(self) -> list[str]:
        return sorted(str(place.relative_to(self.path)) for place in self.path.rglob("*") if place.is_file())


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes é%20 b")


def test_documents_come_again_until_they_are_acknowledged(notes: Notes) -> None:
    notes.announce("1.json", "a.csv", "b.csv")
    notes.announce("deep/2 é.json", "b.csv", "c.csv")
    assert (notes.channel.waiting(), notes.channel.waiting(1)) == (2, 1)
    found = notified_files(PIPE, LOAD, notes.channel)
    assert sorted(found.files) == ["a.csv", "b.csv", "c.csv"]
    assert notified_files(PIPE, LOAD, notes.channel) == found
    with acknowledged_after(notes.channel, found):
        assert len(notes.left()) == 2
    assert notes.left() == []
    notes.channel.acknowledge(found.handles)
    assert notes.channel.waiting() == 0


def test_a_failed_run_leaves_the_documents(notes: Notes) -> None:
    notes.announce("1.json", "a.csv")
    found = notified_files(PIPE, LOAD, notes.channel)
    with pytest.raises(ZeroDivisionError), acknowledged_after(notes.channel, found):
        raise ZeroDivisionError
    assert notes.left() == ["1.json"]


def test_documents_about_files_elsewhere_are_done_with(notes: Notes) -> None:
    notes.announce("1.json", "file:///other/a.csv")
    found = notified_files(PIPE, LOAD, notes.channel)
    assert found == NotifiedFiles((), ("1.json",), 1)


def test_a_document_that_is_being_written_is_left_for_the_next_run(notes: Notes) -> None:
    notes.put("half.json", '{"files": ["a.c')
    notes.announce("whole.json", "b.csv")
    assert notified_files(PIPE, LOAD, notes.channel) == NotifiedFiles(("b.csv",), ("whole.json",), 2)
    assert notes.left() == ["half.json", "whole.json"]
    notes.announce("half.json", "a.csv")
    assert sorted(notified_files(PIPE, LOAD, notes.channel).files) == ["a.csv", "b.csv"]


def test_a_document_that_stays_unreadable_is_put_aside_after_ten_minutes(
    notes: Notes, caplog: pytest.LogCaptureFixture
) -> None:
    notes.put("sub/odd.json", "<xml/>")
    notes.put("latin.json", '{"files": ["é.csv"]}'.encode("latin-1"))
    notes.announce("good.json", "a.csv")
    notes.late = UNFINISHED_FOR + timedelta(seconds=1)
    with caplog.at_level(logging.WARNING):
        found = notified_files(PIPE, LOAD, notes.channel)
    assert found.files == ("a.csv",)
    assert notes.left() == ["_unreadable/latin.json", "_unreadable/sub/odd.json", "good.json"]
    assert "it is not UTF-8. It was renamed to _unreadable/latin.json" in caplog.text
    assert found.handles == ("good.json",)
    assert notes.channel.waiting() == 1


def test_a_byte_order_mark_is_no_problem_and_an_overlong_document_is_not_read(notes: Notes) -> None:
    notes.put("marked.json", b"\xef\xbb\xbf" + json.dumps({"files": ["a.csv"]}).encode())
    with (notes.path / "huge.json").open("wb") as file:
        file.truncate(1 << 30)
    assert notified_files(PIPE, LOAD, notes.channel) == NotifiedFiles(("a.csv",), ("marked.json",), 2)


def test_hidden_documents_and_a_missing_directory_are_no_notifications(notes: Notes) -> None:
    notes.announce(".1.json.tmp", "a.csv")
    notes.announce("_2.json", "a.csv")
    assert notes.channel.receive(10) == []
    assert DirectoryChannel(f"{notes.path}/none").receive(10) == ()
    assert DirectoryChannel(f"{notes.path}/none").waiting() == 0


def test_a_run_takes_only_so_many_documents(notes: Notes) -> None:
    for number in range(5):
        notes.announce(f"{number}.json", f"{number}.csv")
    assert len(notified_files(PIPE, LOAD, notes.channel, most=3).handles) == 3


def test_a_prefix_of_a_bucket_is_a_directory_of_documents() -> None:
    with running_object_store() as store:
        store.put("notes/1 é.json", json.dumps({"files": ["a.csv"]}).encode())
        store.put("notes/odd.json", b"?")
        late = datetime.now(UTC) + timedelta(hours=1)
        channel = DirectoryChannel(f"s3://{BUCKET}/notes", store.options, clock=lambda: late)
        found = notified_files(PIPE, LOAD, channel)
        assert found == NotifiedFiles(("a.csv",), ("1 é.json",), 2)
        channel.acknowledge(found.handles)
        channel.acknowledge(found.handles)
        assert store.keys() == ["notes/_unreadable/odd.json"]


class HeldChannel:
    """A channel whose documents must be held every few milliseconds; the second time fails."""

    hold_seconds = 0.01

    def __init__(self) -> None:
        self.held = 0
        self.acknowledged: list[str] = []
        self.often = threading.Event()

    def receive(self, most: int) -> Sequence[Notification]:
        return ()

    def waiting(self) -> int:
        return 0

    def hold(self, handles: Sequence[str]) -> None:
        self.held += 1
        if self.held == 2:
            raise NotificationsUnreachable(channel="c", access="a", problem="away")
        if self.held == 3:
            self.often.set()

    def acknowledge(self, handles: Sequence[str]) -> None:
        self.acknowledged += handles
        raise NotificationsUnreachable(channel="c", access="a", problem="away")

    def refuse(self, handle: str) -> str | None:
        return "it stays"


def test_documents_are_held_while_the_job_runs_and_a_channel_that_is_away_does_not_fail_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = HeldChannel()
    with acknowledged_after(channel, NotifiedFiles(("a",), ("1", "2"))):
        assert channel.often.wait(10)
    held = channel.held
    assert channel.acknowledged == ["1", "2"]
    assert "were not held" in caplog.text
    assert "were not removed" in caplog.text
    assert channel.held == held


def test_all_documents_of_a_directory_count_as_outstanding(notes: Notes, tmp_path: Path) -> None:
    for number in range(1_003):
        notes.put(f"{number}.json", "")
    assert notes.channel.waiting() == 1_000
    assert channel_facts(PIPE, lambda _: notes.channel) == ChannelFacts(1_003)
    assert channel_facts(PIPE, lambda _: DirectoryChannel(f"{tmp_path}/none")) == ChannelFacts(0)
    assert channel_facts(PIPE, lambda _: None) == ChannelFacts()


def test_a_channel_that_cannot_be_reached_has_a_problem_and_no_number() -> None:
    def away(pipe: Pipe) -> DirectoryChannel:
        raise NotificationsUnreachable(channel="c", access="a", problem="away")

    found = channel_facts(PIPE, away)
    assert found.outstanding is None
    assert "away" in (found.problem or "")
