"""Debezium's embedded engine, as a measure: fetched from Maven Central into a cache of the benchmarks' own.

Nothing of it is part of the project, and nothing but a benchmark imports this.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.postgresql import PASSWORD, USER, PostgresServer

__all__ = ["VERSION", "Debezium", "ReaderRun", "run_process"]

VERSION = "3.6.1.Final"
HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidemark-benchmarks" / f"debezium-{VERSION}"
_MODULES = ("debezium-embedded", "debezium-connector-postgres")
# Its own descriptions name a repository that is not public, so only Central is asked.
_SETTINGS = """<ivysettings><settings defaultResolver="central"/><caches defaultCacheDir="{cache}/ivy"/>
<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>"""
_WANTED = """<ivy-module version="2.0"><info organisation="none" module="benchmark"/>
<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies></ivy-module>"""
_ONE = '<dependency org="io.debezium" name="{name}" rev="{version}" conf="default->default"/>'


@dataclass(frozen=True)
class ReaderRun:
    """One process that read a slot. Seconds of wall clock and CPU, of it and the children it waited for; RSS in MiB.

    `first` and `last`: seconds from the start of the process to its first and its last event.
    """

    wall: float
    cpu: float
    peak: float
    first: float
    last: float
    events: int


class Debezium:
    """The engine, ready to run. The first time needs Maven Central and takes about a minute."""

    def __init__(self, cache: Path = CACHE) -> None:
        self.cache, self.jars, self.classes = cache, cache / "jars", cache / "classes"
        if not (cache / "complete").exists():
            print(f"Debezium {VERSION} comes from Maven Central into {cache}, once", flush=True)
            self._fetch()
        subprocess.run(["javac", "-d", self.classes, "-cp", f"{self.jars}/*", HERE / "ReadSlot.java"], check=True)

    def _fetch(self) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        settings, wanted = self.cache / "ivysettings.xml", self.cache / "ivy.xml"
        settings.write_text(_SETTINGS.format(cache=self.cache))
        ones = "".join(_ONE.format(name=name, version=VERSION) for name in _MODULES)
        wanted.write_text(_WANTED.format(dependencies=ones))
        (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-2*.jar")
        asked = ["java", "-jar", ivy, "-settings", settings, "-ivy", wanted, "-types", "jar", "bundle"]
        pattern = f"{self.jars}/[artifact]-[revision].[ext]"
        subprocess.run([*asked, "-retrieve", pattern, "-sync"], check=True, capture_output=True)
        (self.cache / "complete").touch()

    def read(
        self, server: PostgresServer, database: str, *, slot: str, publication: str, events: int, form: str, home: Path
    ) -> ReaderRun:
        """Reads `events` row changes from the slot. `form`: "records" as the engine has them, or "json" texts."""
        file = home / "debezium.properties"
        settings = _settings(server, database, slot=slot, publication=publication)
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = ["java", "-Xmx1g", "-cp", f"{self.jars}/*:{self.classes}", "ReadSlot", str(file), str(events), form]
        return run_process(command)


def _settings(server: PostgresServer, database: str, *, slot: str, publication: str) -> Mapping[str, str]:
    """Its defaults, but for: nothing asked of tables first, no wait between batches, and twice the batch and queue."""
    return {
        "name": "benchmark",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "topic.prefix": "benchmark",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.dbname": database,
        "slot.name": slot,
        "publication.name": publication,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "tombstones.on.delete": "false",
        "poll.interval.ms": "10",
        "max.batch.size": "4096",
        "max.queue.size": "16384",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
    }


def run_process(command: list[str], environment: Mapping[str, str] | None = None) -> ReaderRun:
    """Runs a reader whose last line says {"first", "last", "events"}, in seconds after BENCHMARK_BEGAN (which is in
    milliseconds since 1970). Raises RuntimeError with what it said.
    """
    began = time.perf_counter()
    more = {"BENCHMARK_BEGAN": str(int(time.time() * 1000)), **(environment or {})}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **more}
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said}")
    answer = json.loads(said.splitlines()[-1])
    return ReaderRun(
        wall=wall,
        cpu=answer.get("cpu", used.ru_utime + used.ru_stime),  # a tree counts itself
        peak=answer.get("peak", used.ru_maxrss / 1024),
        first=answer["first"],
        last=answer["last"],
        events=answer["events"],
    )
