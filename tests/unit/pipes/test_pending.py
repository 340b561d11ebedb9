"""The files that wait for a pipe, by its location and its queue, without Spark."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.pipes.queues import Landing, Queue
from tidemark.errors import PipeNotFound, StageLocationMissing, StageNotFound
from tidemark.model.codec import to_json
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import ENDS, KEPT, PLANS
from tidemark.pipes.worker import definitions, stages


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path)


def test_files_wait_that_match_and_belong_to_no_batch(landing: Landing) -> None:
    assert landing.names() == []
    landing.put("b.csv", "sub/a é%20.csv", "_hidden.csv", ".h.csv", "a.txt")
    assert landing.names() == ["b.csv", "sub/a é%20.csv"], "no run has made the queue yet"
    queue = Queue(landing.queue_place)
    assert len(landing.names()) == 2
    queue.put("planned", "b.csv")
    assert landing.names() == ["sub/a é%20.csv"]
    queue.put("planned", "sub/a é%20.csv")
    assert landing.names() == []
    landing.put("late.csv")
    os.utime(landing.files / "late.csv", (1, 1))
    assert landing.names() == ["late.csv"], "its age says nothing"


def test_files_that_were_queued_after_their_last_batch_wait_too(landing: Landing) -> None:
    queue = Queue(landing.queue_place)
    began = datetime.now(UTC) - timedelta(minutes=10)
    queue.put("queued", "named.csv", at=began)
    queue.put("planned", "failed.csv", at=began)
    assert landing.names() == ["named.csv"]
    queue.put("planned", "named.csv", at=began + timedelta(minutes=1))
    queue.put("queued", "failed.csv", at=began + timedelta(minutes=2))
    assert landing.names() == ["failed.csv"]
    queue.put("queued", "named.csv", at=began + timedelta(minutes=3), source="insert_files")
    assert landing.names() == ["failed.csv"], "a run planned it while it was named"
    queue.put("queued", "named.csv", at=began + timedelta(minutes=4), source="refresh")
    assert landing.names() == ["failed.csv", "named.csv"]


def test_files_that_a_batch_took_elsewhere_do_not_hide_those_of_the_same_name(landing: Landing) -> None:
    """An earlier statement of the pipe had another location."""
    landing.put("a.csv", "b.csv", "sub/c.csv")
    queue, here = Queue(landing.queue_place), landing.files.as_uri()
    for number, (place, names) in enumerate(
        [("file:///elsewhere", ["a.csv"]), (f"{here}/sub", ["c.csv"]), (here, ["b.csv"])], 1
    ):
        load = Load(table="a.b", path="/lake/a/b", location=place)
        queue.put("batch", "", batch=number, statement=to_json(load))
        queue.put("planned", *names, batch=number)
    assert landing.names() == ["a.csv"]


def test_a_file_that_was_asked_for_again_waits_for_a_batch_behind_the_last_one_whatever_clocks_say(
    landing: Landing,
) -> None:
    """Runs and refreshes may be on several hosts."""
    queue, now = Queue(landing.queue_place), datetime.now(UTC)
    queue.put("planned", "a.csv", "b.csv", batch=3, at=now)
    queue.put("queued", "a.csv", source="refresh", batch=3, at=now - timedelta(hours=1))
    queue.put("queued", "b.csv", source="refresh", batch=2, at=now + timedelta(hours=1))
    assert landing.names() == ["a.csv"]
    queue.put("planned", "a.csv", batch=4, at=now - timedelta(hours=2))
    assert landing.names() == []


def test_files_that_copy_into_has_loaded_elsewhere_do_not_hide_those_of_the_same_name(landing: Landing) -> None:
    landing.put("a.csv", "b.csv", "sub/c.csv")
    queue, here = Queue(landing.queue_place), landing.files.as_uri()
    queue.put("copied", "a.csv", source="file:///elsewhere")
    queue.put("copied", "b.csv", source=f"{here}/")
    queue.put("copied", "c.csv", source=f"{here}/sub")
    assert landing.names() == ["a.csv"]


def test_a_batch_that_no_run_has_ended_is_unfinished(landing: Landing) -> None:
    queue = Queue(landing.queue_place)
    queue.put("planned", "a.csv", batches={PLANS: 3, ENDS: 2})
    assert landing.look().unfinished
    queue.put("result", "a.csv", batches={ENDS: 3})
    assert not landing.look().unfinished


def test_files_are_remembered_as_long_as_runs_remember_them(landing: Landing) -> None:
    landing.put("old.csv")
    queue = Queue(landing.queue_place)
    queue.put("planned", "old.csv", at=datetime.now(UTC) - KEPT + timedelta(days=1))
    assert landing.names() == []
    landing.pipe("q", "")
    queue = Queue(landing.queue_place.with_name("q__files"))
    queue.put("planned", "old.csv", at=datetime.now(UTC) - KEPT - timedelta(days=2))
    assert landing.names("q") == ["old.csv"]
    queue.put("late", "old.csv")
    queue.put("copied", "other.csv")
    assert landing.names("q") == ["old.csv"]
    queue.put("copied", "old.csv")
    assert landing.names("q") == []


def test_a_pipe_without_auto_ingest_counts_new_files_only_on_request_and_a_paused_one_none(landing: Landing) -> None:
    landing.pipe("manual", "", auto_ingest=False)
    landing.put("a.csv")
    assert landing.names("manual") == []
    assert landing.names("manual", list_files=True) == ["a.csv"]
    definitions.pause_pipe(landing.store, "p", by="a test")
    assert (landing.names(), landing.look().paused) == ([], True)


def test_pipes_on_one_location_share_a_listing_and_see_files_that_come_later(landing: Landing) -> None:
    landing.pipe("q", "")
    landing.put("a.csv", "b.txt")
    assert (landing.look("p", max_age=60).count, landing.look("q", max_age=60).count) == (1, 2)
    assert landing.looks.listings.requests == 1
    landing.put("c.csv")
    assert (landing.look("p").count, landing.looks.listings.requests) == (2, 2)


def test_news_are_files_that_were_not_there_before(landing: Landing) -> None:
    landing.put("a.csv", "b.csv")
    both = landing.look()
    queue = Queue(landing.queue_place)
    queue.put("planned", "a.csv")
    rest = landing.look()
    assert rest.fingerprint not in ("", both.fingerprint)
    assert (rest.has_others_than(both), both.has_others_than(rest)) == (False, True)
    shown = rest.to_plain()
    assert (shown["files"], shown["first"], shown["unfinished"]) == (1, ["b.csv"], False)
    assert datetime.fromisoformat(shown["oldest_at"]) <= datetime.now(UTC)


def test_an_object_that_is_gone_is_an_error(landing: Landing) -> None:
    with pytest.raises(PipeNotFound, match="These exist: p"):
        landing.look("nobody")
    stages.create_stage(landing.store, "st", str(landing.files))
    copy = "COPY INTO a.b FROM @st"
    definitions.create_pipe(landing.store, "staged", copy, queue="/nowhere/staged__files", by="a test")
    assert landing.names("staged") == []
    landing.files.rmdir()
    with pytest.raises(StageLocationMissing):
        landing.look("staged")
    stages.drop_stage(landing.store, "st")
    with pytest.raises(StageNotFound):
        landing.look("staged")


def test_the_files_of_a_checkpoint_count_as_well(landing: Landing) -> None:
    landing.put("a.csv", "b.csv")
    queue = Queue(landing.queue_place)
    queue.put("planned", "a.csv")
    queue.checkpoint()
    assert landing.names() == ["b.csv"]
    queue.put("planned", "b.csv")
    assert landing.names() == []


def test_times_decide_if_the_names_cannot_be_read_without_spark(landing: Landing) -> None:
    landing.put("a.csv", "old.csv")
    queue = Queue(landing.queue_place)
    queue.put("planned", "a.csv", "old.csv")
    queue.checkpoint(v2=True)
    assert landing.names() == ["a.csv", "old.csv"]
    pipe = definitions.get_pipe(landing.store, "p")
    definitions.note_pipe_run(landing.store, pipe.uid, None, None, datetime.now(UTC))
    os.utime(landing.files / "old.csv", (1, 1))
    assert landing.names() == ["a.csv"], "modified after the last run, or an hour before it"
