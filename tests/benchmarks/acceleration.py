"""Query acceleration: predicted and measured seconds on a standalone cluster, with one executor and then two.

    python -m tests.benchmarks.acceleration [--rounds 5] [--shapes even mixed skewed] [--keep DIRECTORY]

Each round runs an application on one executor, predicts its time with a scale factor of 1 from its event log, and runs
it again with dynamic allocation up to two executors. Tasks wait and do not compute, since this machine has few cores.
`--keep` writes the event logs there, without what no reader needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tests.airflow.standalone_cluster import CLIENT_CONF, HOST, StandaloneCluster, standalone_cluster
from tests.benchmarks.accelerated_queries import SHAPES
from tidemark.acceleration.model.applications import Application
from tidemark.acceleration.planning.estimate import predicted_seconds, ramp_of
from tidemark.acceleration.planning.settings import accelerated_settings
from tidemark.acceleration.worker.event_logs import _Lines, find_event_log, read_application

QUERIES = Path(__file__).with_name("accelerated_queries.py")
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
UNREAD = ("Task Metrics", "Accumulables", "Task Executor Metrics", "RDD Info", "Stage Infos", "physicalPlanDescription")
UNREAD += ("sparkPlanInfo", "details", "Details", "JVM Information", "System Properties", "Classpath Entries")
UNREAD += ("Hadoop Properties", "Metrics Properties", "modifiedConfigs", "Log Urls", "Executor Metrics")
KEPT_SETTINGS = ("spark.dynamicAllocation.", "spark.executor.cores", "spark.executor.instances", "spark.tidemark.")


def main(rounds: int, shapes: list[str], keep: Path | None) -> None:
    with tempfile.TemporaryDirectory() as place, standalone_cluster(Path(place), workers=2) as cluster:
        logs = Path(place) / "events"
        logs.mkdir()
        for shape in shapes:
            off = []
            for number in range(rounds):
                plain = run(cluster, logs, shape, settings(logs))
                faster = run(cluster, logs, shape, accelerated(settings(logs), cluster))
                predicted = predicted_seconds(plain, 1)
                assert predicted is not None
                off.append((predicted - faster.seconds) / faster.seconds)
                figures = f"{plain.seconds:6.1f} {predicted:6.1f} {faster.seconds:6.1f} {off[-1]:+7.1%}"
                ramp = f"executor after {ramp_of(plain).launch / 1000:.1f} s"
                print(f"{shape:8} {number} {figures}  {ramp}, load {os.getloadavg()[0]:.1f}", flush=True)
                if keep is not None:
                    kept(logs, plain, keep / f"{shape}-{number}-plain")
                    kept(logs, faster, keep / f"{shape}-{number}-faster")
            print(f"{shape:8} median of {rounds}: {statistics.median(map(abs, off)):.1%} off", flush=True)


def settings(logs: Path) -> dict[str, str]:
    given: Mapping[str, str] = {
        "spark.executor.cores": "1",
        "spark.cores.max": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{logs}",
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "true",
    }
    return {**{name: str(value) for name, value in CLIENT_CONF.items()}, **given}


def accelerated(conf: dict[str, str], cluster: StandaloneCluster) -> dict[str, str]:
    return accelerated_settings(conf, master=f"spark://{HOST}:{cluster.port}", factor=1)


def run(cluster: StandaloneCluster, logs: Path, shape: str, conf: Mapping[str, str]) -> Application:
    """The application, after it has ended well."""
    before = set(logs.iterdir())
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = [str(SUBMIT), "--master", f"spark://{HOST}:{cluster.port}", *settings, str(QUERIES), shape]
    subprocess.run(command, check=True, capture_output=True)
    (log,) = set(logs.iterdir()) - before
    return read_application(find_event_log(str(log), None))


def kept(logs: Path, application: Application, to: Path) -> None:
    """The event log without what no reader needs, and without names of this machine."""
    found = find_event_log(application.id, str(logs))
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("w", encoding="utf-8") as file:
        for event in _Lines(found, 1 << 30).events():
            file.write(json.dumps(smaller(event), separators=(",", ":")) + "\n")


def smaller(value: object) -> object:
    if isinstance(value, dict):
        of = {name: smaller(inner) for name, inner in value.items() if name not in UNREAD}
        for name in ("Spark Properties", "Properties"):
            if name in of and isinstance(of[name], dict):
                known = (*KEPT_SETTINGS, "spark.sql.execution.id")
                of[name] = {one: text for one, text in of[name].items() if one.startswith(known)}
        return of
    return [smaller(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.shapes, chosen.keep)
