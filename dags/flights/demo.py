"""`make demo`: runs the DAG flights_stream once, without a scheduler, and shows what each task does.

A second run continues the first one: the replay by its table, the delivery by its stream.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flights.airflow_log import DRIVER_LOG, entry_of, reason_of

DAG = "flights_stream"
STARTING, ENDING = "[DAG TEST] starting task_id=", "[DAG TEST] end task task_id="
TOLD_BY_TASKS = "flights"  # the logger of the DAG's own tasks


@dataclass
class Telling:
    """Turns Airflow's log, one JSON object a line, into the lines to show."""

    started: float = field(default_factory=time.monotonic)
    task: str = ""
    task_started: float = 0.0

    def lines(self, entry: Mapping[str, Any]) -> Iterator[str]:
        event = str(entry.get("event", ""))
        if event.startswith(STARTING):
            self.task, self.task_started = event.removeprefix(STARTING).split()[0], time.monotonic()
            yield f"\n[{time.monotonic() - self.started:4.0f} s] {self.task}"
        elif event.startswith(ENDING):
            yield f"         done in {time.monotonic() - self.task_started:.0f} s"
        elif entry.get("logger") == TOLD_BY_TASKS or entry.get("filename") == DRIVER_LOG:
            yield f"         {event}"
        elif entry.get("level") in ("error", "critical"):
            yield f"         {event}. {reason_of(entry)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=1, help="days of 2013 to let pass")
    days = parser.parse_args().days
    home = Path(os.environ["AIRFLOW_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    print(f"Airflow's home is {home}: no connection, the lake in {home / 'lake'}, Spark on this machine")
    _migrate(home)
    _start_spark()
    code = _run(days, home)
    if code != 0:
        print(f"\nThe run failed. All of its log: {home / 'demo.log'}")
        return code
    _look_next(home)
    return 0


def _migrate(home: Path) -> None:
    if not (home / "airflow.db").exists():
        print("Making Airflow's own database (once)", flush=True)
    subprocess.run(["airflow", "db", "migrate"], check=True, capture_output=True)


def _start_spark() -> None:
    """Begins to start the warm Spark of this host. If that fails, the first task tries it again, and says why."""
    print("Starting Spark, which ends after ten minutes without a job", flush=True)
    command = ["airflow", "tidemark", "spark", "start"]
    subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _run(days: float, home: Path) -> int:
    """Run the DAG in a process of its own; its log goes to a file and, shortened, to the terminal."""
    command = ["airflow", "dags", "test", DAG, "--conf", json.dumps({"days": days})]
    environment = os.environ | {"AIRFLOW__LOGGING__JSON_LOGS": "True", "PYTHONUNBUFFERED": "1"}
    print(f"Running {DAG} with days={days:g}", flush=True)
    telling = Telling()
    with (home / "demo.log").open("w", encoding="utf-8") as log:
        run = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert run.stdout is not None
        for line in run.stdout:
            log.write(line)
            for told in telling.lines(entry_of(line)):
                print(told, flush=True)
    return run.wait()  # not the shown lines: an error that a retry overcame is no failure


def _look_next(home: Path) -> None:
    print("\nThe stream now:", flush=True)
    subprocess.run(["airflow", "tidemark", "streams", "list"], check=False, stderr=subprocess.DEVNULL)
    print(
        f"""
Look next
  make demo               The next day: only its changes are delivered.
  make demo DAYS=7        A week at once: one window, and each change still once.
  make ui                 The same DAG in Airflow's pages, on a schedule.
  AIRFLOW_HOME={home} .venv/bin/airflow tidemark streams show board_changes
  {home / "demo.log"}     The whole log of the tasks.
  {home / "lake" / "nyc"}     The tables: board, board_mirror, board_history."""
    )


if __name__ == "__main__":
    sys.exit(main())
