"""A run of a pipe that has a channel of notifications, with the step that the operator calls."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import InvalidArgument, StorageUnreachable
from tidemark.hooks.notifications import channels_of_pipes
from tidemark.pipes.model.jobs import RunPipeReport
from tidemark.pipes.worker.running import PipeRun, run_pipe

pytestmark = pytest.mark.spark


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def run(desk: Desk, wish: PipeRun | None = None) -> RunPipeReport:
    return run_pipe(desk.lake._context.runtime, "p", wish, by="run", channel_of=channels_of_pipes({}))


def announce(notes: Path, *names: str) -> None:
    (notes / f"{names[0]}.json").write_text(json.dumps({"files": names}))


def test_a_run_takes_announced_files_and_removes_their_notifications(desk: Desk, notes: Path) -> None:
    desk.table("id INT")
    desk.ask(f"CREATE PIPE p AUTO_INGEST = TRUE NOTIFICATION_CHANNEL = '{notes}' AS COPY INTO db.t FROM @s/new/")
    desk.put(new__first="1\n", old__first="9\n")
    assert run(desk).rows_loaded == 1  # by the first listing
    desk.put(new__told="2\n", new__lost="3\n")
    announce(notes, "told.csv", "none.csv")
    assert run(desk).files == 1
    assert desk.rows() == [(1,), (2,)]
    assert [*notes.iterdir()] == []
    announce(notes, "told.csv")
    assert run(desk, PipeRun(prefix="los")).rows_loaded == 1  # a run for certain files leaves notifications alone
    assert len([*notes.iterdir()]) == 1
    assert run(desk).batches == 0
    assert [*notes.iterdir()] == []


def test_a_name_that_no_file_can_have_keeps_no_other_file_from_the_pipe(desk: Desk, notes: Path) -> None:
    desk.table("id INT")
    desk.ask(f"CREATE PIPE p AUTO_INGEST = TRUE NOTIFICATION_CHANNEL = '{notes}' AS COPY INTO db.t FROM @s/new/")
    assert run(desk).files == 0
    desk.put(new__told="2\n")
    (notes / "odd.json").write_text(json.dumps({"files": ["x" * 300, "y" * 5000, "told.csv"]}))
    assert run(desk).rows_loaded == 1
    assert [*notes.iterdir()] == []


def test_a_notebook_takes_announced_files_and_its_status_has_the_state_of_the_channel(desk: Desk, notes: Path) -> None:
    desk.table("id INT")
    desk.ask(f"CREATE PIPE p AUTO_INGEST = TRUE NOTIFICATION_CHANNEL = '{notes}' AS COPY INTO db.t FROM @s/new/")
    channel = ("numOutstandingMessagesOnChannel", "lastPulledFromChannelTimestamp", "error")

    def status() -> list[Any]:
        found = json.loads(desk.one("SELECT SYSTEM$PIPE_STATUS('p')")[0])
        return [found.get(name) for name in channel]

    desk.put(new__first="1\n")
    assert desk.lake.run_pipe("p").rows_loaded == 1  # by the first listing
    assert status() == [0, None, None]
    desk.put(new__told="2\n", new__lost="3\n")
    announce(notes, "told.csv")
    assert status() == [1, None, None]
    before = desk.now()
    assert desk.lake.run_pipe("p").rows_loaded == 1
    assert (desk.rows(), [*notes.iterdir()]) == ([(1,), (2,)], [])
    waiting, pulled, error = status()
    assert (waiting, error) == (0, None)
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(pulled) <= desk.now()
    announce(notes, "lost.csv")
    assert desk.lake.run_pipe("p", notifications=False).rows_loaded == 1
    assert status() == [1, pulled, None]
    desk.ask("CREATE PIPE listed AS COPY INTO db.t FROM @s/new/")
    listed = desk.lake.pipe_status("listed")
    assert listed.keys().isdisjoint(channel)


def test_a_status_names_the_channel_that_cannot_be_reached_and_does_not_fail(desk: Desk) -> None:
    desk.table("id INT")
    address = "nowhere://no storage/notes"
    desk.ask(f"CREATE PIPE p NOTIFICATION_CHANNEL = '{address}' AS COPY INTO db.t FROM @s")
    status = desk.lake.pipe_status("p")
    assert (status["executionState"], "numOutstandingMessagesOnChannel" in status) == ("RUNNING", False)
    assert "nowhere" in status["error"]
    with pytest.raises(StorageUnreachable):
        desk.lake.run_pipe("p")


def test_a_channel_that_cannot_be_is_refused_when_the_pipe_is_made(desk: Desk) -> None:
    desk.table("id INT")
    topic = "arn:aws:sns:us-east-1:123456789012:topic"
    with pytest.raises(InvalidArgument, match="only queues of SQS"):
        desk.ask(f"CREATE PIPE p NOTIFICATION_CHANNEL = '{topic}' AS COPY INTO db.t FROM @s")
