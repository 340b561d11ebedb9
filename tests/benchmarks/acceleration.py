"""Query acceleration: predicted and measured seconds on a standalone cluster, with one executor and then two.

    python -m tests.benchmarks.acceleration applications | queries [--rounds 5] [--shapes even mixed skewed]
        [--keep DIRECTORY]

Tasks wait and do not compute, since this machine has few cores. `applications`: each round runs an application on one
executor, predicts its time with a scale factor of 1 from its event log, and runs it again with dynamic allocation up to
two executors. `queries`: one application on one executor and one on two run the queries of all rounds, after a round
that does not count. So the time of a second executor's start is in the first figure, and not in the second.
`--keep` writes the event logs there, without what no reader needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyspark

from tests.airflow.standalone_cluster import CLIENT_CONF, HOST, StandaloneCluster, standalone_cluster
from tests.benchmarks.accelerated_queries import SHAPES
from tidemark.acceleration.model.applications import Application
from tidemark.acceleration.planning.estimate import part_of, predicted_seconds, ramp_of
from tidemark.acceleration.planning.settings import accelerated_settings
from tidemark.acceleration.worker.event_logs import LONGEST_LINE, _Lines, find_event_log, read_application

QUERIES = Path(__file__).with_name("accelerated_queries.py")
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
UNREAD = ("Task Metrics", "Accumulables", "Task Executor Metrics", "RDD Info", "Stage Infos", "physicalPlanDescription")
UNREAD += ("sparkPlanInfo", "details", "Details", "JVM Information", "System Properties", "Classpath Entries")
UNREAD += ("User", "Hadoop Properties", "Metrics Properties", "modifiedConfigs", "Log Urls", "Executor Metrics")
KEPT_SETTINGS = ("spark.dynamicAllocation.", "spark.executor.cores", "spark.executor.instances", "spark.tidemark.")


def applications(cluster: StandaloneCluster, logs: Path, shape: str, rounds: int, keep: Path | None) -> list[float]:
    """How far each prediction of a whole application was off."""
    off = []
    for number in range(rounds):
        plain = run(cluster, logs, shape, 1, settings(logs, 1))
        faster = run(cluster, logs, shape, 1, accelerated(settings(logs, 1), cluster))
        predicted = predicted_seconds(plain, 1)
        assert predicted is not None
        off.append(shown(shape, number, plain.seconds, predicted, faster.seconds))
        print(f"  an executor started in {ramp_of(plain).launch / 1000:.1f} s", flush=True)
        kept(logs, (plain, faster), keep, f"{shape}-{number}")
    return off


def queries(cluster: StandaloneCluster, logs: Path, shape: str, rounds: int, keep: Path | None) -> list[float]:
    """How far each prediction of a round's queries was off, if all executors are there from the beginning."""
    plain = run(cluster, logs, shape, rounds + 1, settings(logs, 1))
    faster = run(cluster, logs, shape, rounds + 1, settings(logs, 2))
    kept(logs, (plain, faster), keep, f"{shape}-queries")
    each = len(plain.executions) // (rounds + 1)
    off = []
    for number in range(1, rounds + 1):
        ids = range(number * each, (number + 1) * each)
        before, after = parts(plain, ids), parts(faster, ids)
        predicted = sum(predicted_seconds(at_once(part), 1) or 0.0 for part in before)
        off.append(shown(shape, number, total(before), predicted, total(after)))
    return off


def parts(of: Application, ids: Iterable[int]) -> list[Application]:
    numbers = [one.id for one in of.executions]
    found = [part_of(of, numbers[place]) for place in ids]
    return [part for part in found if part is not None]


def at_once(part: Application) -> Application:
    """The same, with further executors that are there from the beginning."""
    timeout = "spark.dynamicAllocation.schedulerBacklogTimeout"
    return replace(part, driver_ready=None, settings={timeout: "0s"})


def total(parts: Iterable[Application]) -> float:
    return sum(part.seconds for part in parts)


def shown(shape: str, number: int, plain: float, predicted: float, measured: float) -> float:
    off = (predicted - measured) / measured
    figures = f"{plain:7.1f} {predicted:7.1f} {measured:7.1f} {off:+8.1%}"
    print(f"{shape:8} {number} {figures}  load {os.getloadavg()[0]:.1f}", flush=True)
    return off


def settings(logs: Path, executors: int) -> dict[str, str]:
    given: Mapping[str, str] = {
        "spark.executor.cores": "1",
        "spark.cores.max": str(executors),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{logs}",
        "spark.ui.enabled": "false",
        "spark.sql.adaptive.enabled": "true",
    }
    return {**{name: str(value) for name, value in CLIENT_CONF.items()}, **given}


def accelerated(conf: dict[str, str], cluster: StandaloneCluster) -> dict[str, str]:
    return accelerated_settings(conf, master=f"spark://{HOST}:{cluster.port}", factor=1)


def run(cluster: StandaloneCluster, logs: Path, shape: str, times: int, conf: Mapping[str, str]) -> Application:
    """The application, after it has ended well."""
    before = set(logs.iterdir())
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command = [str(SUBMIT), "--master", f"spark://{HOST}:{cluster.port}", *words, str(QUERIES), shape, str(times)]
    subprocess.run(command, check=True, capture_output=True)
    (log,) = set(logs.iterdir()) - before
    return read_application(find_event_log(str(log), None))


def kept(logs: Path, pair: Iterable[Application], place: Path | None, name: str) -> None:
    """The event logs without what no reader needs, and without names of this machine."""
    if place is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    for application, which in zip(pair, ("plain", "faster"), strict=True):
        with pa.CompressedOutputStream(str(place / f"{name}-{which}.zstd"), "zstd") as file:
            for event in _Lines(find_event_log(application.id, str(logs)), LONGEST_LINE).events():
                file.write(json.dumps(smaller(event), separators=(",", ":")).encode() + b"\n")


def smaller(value: object) -> object:
    if isinstance(value, dict):
        of = {name: smaller(inner) for name, inner in value.items() if name not in UNREAD}
        for name in ("Spark Properties", "Properties"):
            if name in of and isinstance(of[name], dict):
                known = (*KEPT_SETTINGS, "spark.sql.execution.id")
                of[name] = {one: text for one, text in of[name].items() if one.startswith(known)}
        return of
    if isinstance(value, str):
        return value.replace(f"{QUERIES.parent}/", "")
    return [smaller(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ways = {"applications": applications, "queries": queries}
    parser.add_argument("way", choices=ways)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, standalone_cluster(Path(temporary), workers=2) as started:
        events = Path(temporary) / "events"
        events.mkdir()
        for one in chosen.shapes:
            found = ways[chosen.way](started, events, one, chosen.rounds, chosen.keep)
            median = statistics.median(map(abs, found))
            print(f"{one:8} {chosen.way}: median of {chosen.rounds}: {median:.1%} off", flush=True)
