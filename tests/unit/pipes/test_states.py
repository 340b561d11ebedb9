"""The state of a pipe, its status by the fields of the source system, and the path of its queue."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidemark import errors
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.model.status import ChannelFacts, NeededObjects, QueueFacts
from tidemark.pipes.planning.late_files import late_note, late_problem
from tidemark.pipes.planning.names import key_of, known_names, name_parts
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.planning.states import is_stale, stalled_by, state_of
from tidemark.pipes.worker.status import pipe_status

NOW = datetime(2026, 3, 20, 12, 0, 0, 1_000, tzinfo=UTC)
PIPE = Pipe("uid", "p", "COPY INTO t FROM @s", "/q", True, None, None, NOW - timedelta(days=30))
PAUSED = replace(PIPE, paused_at=NOW - timedelta(days=14))


@pytest.mark.parametrize(
    ("pipe", "needed", "state"),
    [
        (PIPE, NeededObjects(), "RUNNING"),
        (PAUSED, NeededObjects(stage=False), "PAUSED"),
        (PIPE, NeededObjects(stage=False, file_format=False, table=False), "STOPPED_STAGE_DROPPED"),
        (PIPE, NeededObjects(file_format=False, table=False), "STOPPED_FILE_FORMAT_DROPPED"),
        (PIPE, NeededObjects(table=False), "STOPPED_MISSING_TABLE"),
        (replace(PIPE, stalled=PipeState.STALLED_EXECUTION_ERROR), NeededObjects(), "STALLED_EXECUTION_ERROR"),
        (replace(PIPE, stalled=PipeState.STALLED_EXECUTION_ERROR), NeededObjects(table=False), "STOPPED_MISSING_TABLE"),
        (replace(PAUSED, ended_at=NOW), NeededObjects(), "STOPPED_MISSING_PIPE"),
    ],
)
def test_the_state_is_the_first_that_keeps_files_out(pipe: Pipe, needed: NeededObjects, state: str) -> None:
    assert state_of(pipe, needed) == state


def test_a_pause_is_stale_after_the_time_that_the_queue_remembers_files() -> None:
    assert not is_stale(PIPE, NOW)
    assert not is_stale(PAUSED, NOW)
    assert is_stale(PAUSED, NOW + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (errors.StageNotFound(stage="s", known="none"), PipeState.STOPPED_STAGE_DROPPED),
        (errors.FileFormatNotFound(file_format="f", known="none"), PipeState.STOPPED_FILE_FORMAT_DROPPED),
        (errors.TableNotFound(path="/t", hint=""), PipeState.STOPPED_MISSING_TABLE),
        (errors.InvalidArgument(argument="a", value=1, problem="p"), PipeState.STALLED_COMPILATION_ERROR),
        (errors.NotADeltaTable(path="/t", problem="p"), PipeState.STALLED_INITIALIZATION_ERROR),
        (errors.JobDied(key="k", exit_code=1, tail=""), PipeState.STALLED_EXECUTION_ERROR),
        (KeyError("x"), PipeState.STALLED_INTERNAL_ERROR),
        (errors.StoreBusy(url="u", problem="p"), None),
        (errors.PipePaused(pipe="p", since="s"), None),
    ],
)
def test_an_error_of_a_run_decides_the_state(error: Exception, state: PipeState | None) -> None:
    assert stalled_by(error) is state


def test_a_status_has_the_fields_that_have_values() -> None:
    assert pipe_status(PIPE, None, NOW) == {"executionState": "RUNNING"}
    assert pipe_status(PIPE, QueueFacts(), NOW) == {"executionState": "RUNNING", "pendingFileCount": 0}
    facts = QueueFacts(2, "a.csv", NOW, "b.csv", NOW, NOW, "c.csv", NOW)
    at = "2026-03-20T12:00:00.001Z"
    notified = replace(PIPE, notification_channel="sqs://q", pulled_at=NOW)
    status = pipe_status(notified, facts, NOW, channel_facts=ChannelFacts(3))
    assert status == {
        "executionState": "RUNNING",
        "pendingFileCount": 2,
        "oldestPendingFilePath": "a.csv",
        "oldestFileTimestamp": at,
        "lastIngestedTimestamp": at,
        "lastIngestedFilePath": "b.csv",
        "lastReceivedMessageTimestamp": at,
        "lastForwardedMessageTimestamp": at,
        "lastForwardedFilePath": "c.csv",
        "lastPulledFromChannelTimestamp": at,
        "numOutstandingMessagesOnChannel": 3,
        "notificationChannelName": "sqs://q",
    }
    nothing_waits = pipe_status(PIPE, replace(facts, pending=0), NOW)
    assert nothing_waits.keys() & {"oldestPendingFilePath", "oldestFileTimestamp"} == set()


def test_a_channel_that_cannot_be_reached_is_a_notice_behind_the_error_of_the_pipe() -> None:
    away = ChannelFacts(problem="The queue does not answer.")
    status = pipe_status(replace(PIPE, notification_channel="sqs://q"), None, NOW, channel_facts=away)
    assert status == {
        "executionState": "RUNNING",
        "notificationChannelName": "sqs://q",
        "error": "The queue does not answer.",
    }
    failed = replace(PIPE, problem="Why.", problem_at=NOW, stalled=PipeState.STALLED_COMPILATION_ERROR)
    assert pipe_status(failed, None, NOW, channel_facts=away)["error"] == "Why. The queue does not answer."
    none_waits = pipe_status(PIPE, None, NOW, channel_facts=ChannelFacts(0))
    assert none_waits == {"executionState": "RUNNING", "numOutstandingMessagesOnChannel": 0}


def test_errors_and_faults_of_a_pipe_have_fields_of_their_own_and_bad_files_have_none() -> None:
    failed = replace(PIPE, problem="why", problem_at=NOW, stalled=PipeState.STALLED_COMPILATION_ERROR)
    at = "2026-03-20T12:00:00.001Z"
    assert pipe_status(failed, None, NOW) == {
        "executionState": "STALLED_COMPILATION_ERROR",
        "lastPipeErrorTimestamp": at,
        "error": "why",
    }
    fault = replace(failed, stalled=PipeState.STALLED_INTERNAL_ERROR)
    assert pipe_status(fault, None, NOW) == {
        "executionState": "STALLED_INTERNAL_ERROR",
        "lastPipeFaultTimestamp": at,
        "fault": "why",
    }
    assert pipe_status(replace(failed, stalled=None), None, NOW) == {"executionState": "RUNNING"}
    late = late_problem(2, "old.csv")
    assert pipe_status(replace(PIPE, problem=f"1 of 2 files have errors. {late}"), None, NOW)["error"].endswith(late)
    stale = pipe_status(PAUSED, None, NOW + timedelta(days=1), stage_exists=False)
    assert stale["executionState"] == "PAUSED"
    assert stale["error"].startswith("The pipe is stale: it has been paused since 2026-03-06 12:00 UTC")


def test_late_files_are_told_with_what_loads_them() -> None:
    said = "2 files are older than the history of 14 days, and may have been loaded before; "
    assert late_note(2, timedelta(days=14)).startswith(f"{said}list_files='all' and their prefix in a run, or")
    assert late_note(2, timedelta(days=14), "X loads them") == f"{said}X loads them"


def test_a_queue_is_where_a_table_of_the_pipes_name_would_be() -> None:
    assert queue_path("s3://b/lake/", "orders") == "s3://b/lake/orders__files"
    assert queue_path("/lake", "shop.orders", 3) == "/lake/shop/orders_3__files"
    assert queue_path("/lake", 'db."my shop"."a/b"') == "/lake/db/my shop/a_b__files"
    with pytest.raises(errors.InvalidArgument):
        queue_path("/lake", '".."."x"')


def test_names_are_the_same_in_any_case_but_in_quotes() -> None:
    assert {key_of(name) for name in ("a.B", "A.b", '"A"."B"', "`A`.b", " a.b ")} == {"A.B"}
    assert key_of('"a.b"') == '"a.b"' != key_of("a.b")
    assert name_parts('db."a""b".`c``d`') == ("db", 'a"b', "c`d")


def test_known_names_are_the_similar_ones_or_the_first() -> None:
    names = [f"pipe_{number:02}" for number in range(12)]
    assert known_names("orders", []) == "none"
    assert known_names("zzz", names).endswith("pipe_09, …")
    assert known_names("orders", ["order", "clicks"]) == "order, …"
