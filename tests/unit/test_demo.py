"""`make demo` has an environment of its own, and shows which task runs, how far it is, and the summary."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.append(str(Path(__file__).parents[2] / "dags"))

from flights.airflow_log import DRIVER_LOG
from flights.demo import Telling
from flights.replay_plan import Flight
from flights.summary import replay_line, summary_lines
from ingest.demo import TABLE, _compare, _row
from tests.unit.lake.delta_directories import add, born, commit, remove

ROOT = Path(__file__).parents[2]
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


def environment_of(target: str, home: Path) -> dict[str, str]:
    """The variables that the commands of `make TARGET` get in the directory `home`, from those of this process."""
    command = ["make", "-n", "-f", ROOT / "Makefile", "-C", home, "--no-print-directory", target]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in said.splitlines() if line.startswith("env "))
    given = line.partition(" .venv/bin/python ")[0].partition(" .ci/ui")[0]
    shown = subprocess.run(["bash", "-c", f"{given} env -0"], capture_output=True, text=True, check=True).stdout
    return dict(one.split("=", 1) for one in shown.split("\0") if one)


@pytest.mark.parametrize("target", ["demo", "demo-ingest", "demo-replication", "ui"])
def test_a_demo_has_no_database_store_lake_or_connection_of_the_user(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD", "AIRFLOW_CONFIG",
        "AIRFLOW__TIDEMARK__LAKE_ROOT", "TIDEMARK_CONTROL_STORE", "TIDEMARK_LAKE_ROOT", "AIRFLOW_CONN_TIDEMARK_DEFAULT",
    ):  # fmt: skip
        monkeypatch.setenv(name, "theirs 'and' so on")
    found = environment_of(target, ROOT)
    assert {name for name in found if name.startswith(("AIRFLOW", "TIDEMARK"))} == {
        "AIRFLOW_HOME",
        "AIRFLOW__CORE__DAGS_FOLDER",
        "AIRFLOW__CORE__LOAD_EXAMPLES",
    }
    assert found["AIRFLOW_HOME"] == str(ROOT / ".home")


def test_a_path_with_a_space_is_no_part_of_the_options_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    home = tmp_path / "a clone"
    for file in ("pyproject.toml", ".ci/constraints/dev.txt"):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).touch()
    options = environment_of("demo", home)["JAVA_TOOL_OPTIONS"].split()
    assert [option for option in options if not option.startswith("-X")] == []
    assert [option for option in options if "spark.jsa" in option] == []
    assert "spark.jsa" in environment_of("demo", ROOT)["JAVA_TOOL_OPTIONS"]


def test_the_sent_rows_are_in_the_table_once_after_its_files_were_compacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    flights = [Flight(left.date(), "UA", number, "EWR", "IAH", None, 1400, left, 2, 11, None) for number in range(3)]
    table = tmp_path / "lake" / TABLE.replace(".", "/")
    table.mkdir(parents=True)
    for name, part in (("a", flights[:1]), ("b", flights[1:]), ("all", flights)):
        pq.write_table(pa.Table.from_pylist([asdict(flight) for flight in part]), table / name)
    born(table)
    commit(table, 1, add("a"))
    commit(table, 2, add("b"))
    compacted = (remove("a", data_change=False), remove("b", data_change=False), add("all", data_change=False))
    commit(table, 3, *compacted)
    assert _compare(tmp_path, [_row(flight) for flight in flights]) == 0
    assert "each of them once" in capsys.readouterr().out
    assert _compare(tmp_path, [_row(flight) for flight in flights[1:]]) == 1
    assert "1 too many" in capsys.readouterr().out
