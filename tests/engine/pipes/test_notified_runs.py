"""A run of a pipe that has a channel of notifications, with the step that the operator calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import InvalidArgument
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


def test_a_channel_that_cannot_be_is_refused_when_the_pipe_is_made(desk: Desk) -> None:
    desk.table("id INT")
    topic = "arn:aws:sns:us-east-1:123456789012:topic"
    with pytest.raises(InvalidArgument, match="only queues of SQS"):
        desk.ask(f"CREATE PIPE p NOTIFICATION_CHANNEL = '{topic}' AS COPY INTO db.t FROM @s")
