"""What `make demo` shows of a run: which task, how far, the summary; not Airflow's own log."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "dags"))

from flights.airflow_log import DRIVER_LOG
from flights.demo import Telling
from flights.summary import replay_line, summary_lines

REPORT = {
    "version": 6,
    "flights": 1067,
    "landed": 2,
    "mirror_differs": 0,
    "history_rows": 1323,
    "history_differs": 0,
    "carriers": [{"carrier": "AA", "landed": 2, "mean_delay": 4.25, "late_percent": 50, "worst_delay": 33}],
    "worst": {"arrival_delay": 33, "flight": "AA 1141", "origin": "JFK", "dest": "MIA", "service_date": "2013-01-01"},
}


def told(**entry: str) -> list[str]:
    return [line.strip() for line in Telling().lines(entry)]


def test_a_task_is_named_when_it_starts_and_timed_when_it_ends() -> None:
    assert told(event="[DAG TEST] starting task_id=deliver.mirror map_index=-1")[0].endswith("s] deliver.mirror")
    assert told(event="[DAG TEST] end task task_id=deliver.mirror map_index=-1")[0].startswith("done in")


def test_progress_and_what_the_tasks_say_are_shown_and_the_rest_is_not() -> None:
    assert told(event="hour 1 of 24", filename=DRIVER_LOG) == ["hour 1 of 24"]
    assert told(event="1,067 flights", logger="flights") == ["1,067 flights"]
    assert told(event="Task started", logger="airflow.api", level="info") == []


def test_an_error_is_shown_with_its_reason() -> None:
    raised = [{"exc_type": "JobDied", "exc_value": "exit code 1"}, {"exc_type": "OSError", "exc_value": "the cause"}]
    telling = Telling().lines({"event": "Task failed", "level": "error", "exception": raised})
    assert [line.strip() for line in telling] == ["Task failed. JobDied: exit code 1"]


def test_the_summary_says_how_the_day_went_and_whether_the_targets_agree() -> None:
    text = "\n".join(summary_lines(REPORT))
    assert "1,067 flights on the mirror, 2 of them landed" in text
    assert "AA             2        +4.2   50 %      33" in text
    assert text.count("equal, row for row") == 2
    assert "7 ROWS DIFFER" in "\n".join(summary_lines(REPORT | {"mirror_differs": 7}))


def test_a_year_that_is_over_is_said() -> None:
    assert "The year is over" in replay_line({"hours": 0})
