"""The warm Spark of this host for the settings of a connection: where it is, and how it starts."""

from __future__ import annotations

import os
import platform
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tidemark
from tidemark.errors import WarmSparkBusy, WarmSparkNotStarted
from tidemark.hooks._files import private_directory, write_private
from tidemark.warm_spark.home import LOG, ServerHome
from tidemark.warm_spark.records import TOKEN, ServerOrder, ServerRecord, digest_of
from tidemark.warm_spark.scratch import make_scratch, with_scratch
from tidemark.warm_spark.slots import jobs_in_slots
from tidemark.warm_spark.start import Taken, start_server, take

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.model.jobs import JobSpec

__all__ = ["WarmSpark", "homes", "warm_spark"]

_KEEPER = Path(tidemark.__file__).parent / "warm_spark" / "keeper.py"
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_LEAST_SLOTS, _MOST_SLOTS = 2, 8
_OF_NO_MATTER = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR")
"""Variables that differ between a shell and a worker, and change nothing in a server."""
_TEMPORARY = "AWS_SESSION_TOKEN"
_RENEWED = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", _TEMPORARY, "AWS_CREDENTIAL_EXPIRATION")
"""Temporary credentials of AWS, which are renewed together. A running server cannot take them over."""

_HEAP = "2g"
_MEGABYTES_PER_JOB = 512

_SETTINGS: Mapping[str, str] = {
    "spark.driver.memory": _HEAP,
    "spark.scheduler.mode": "FAIR",
    "spark.databricks.delta.delta.log.cacheSize": "100",
}
"""Beside those of each job: memory for several at once, a fair share of the cores, and a bound for what Delta keeps."""

_POOLS_SETTING = "spark.scheduler.allocation.file"
_POOLS = """<?xml version="1.0"?>
<allocations>
  <pool name="default"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""
"""All jobs run in the pool `default`. Inside it Spark serves the oldest first, whatever `spark.scheduler.mode` says."""

_SMALL_HEAPS = ("512m", "1g", "1024m", "2g", "2048m", "3g", "4g", "4096m")
_OF_A_SHARED_JVM = (
    "-XX:+ExitOnOutOfMemoryError -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Small jobs run each path of Spark's planner a few times. By default, half of the CPU then compiles those for speed.
With thresholds ten times as high, only long loops over rows are compiled so.
"""

_OURS: Mapping[str, str] = {
    "spark.connect.grpc.binding.address": "localhost",
    "spark.connect.grpc.binding.port": "0",
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
}
"""The keeper ends the sessions of jobs that have ended. By default, Spark also ends those that ask nothing for an
hour.
"""


_LOOPBACK = "127.0.0.1"
_ON_LOOPBACK: Mapping[str, str] = {
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.authenticate": "true",
}
"""Without executors elsewhere nothing listens for other hosts. Spark draws the secret of its own ports itself."""


@dataclass(frozen=True)
class WarmSpark:
    """The server of one user with these settings. `conf` and `environment` may have secrets, and are not printed."""

    home: ServerHome
    connection: Connection
    order: ServerOrder
    conf: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    def take(self, *, stop_if_due: Callable[[], None], say: Callable[[str], object], is_long: bool = False) -> Taken:
        """A slot, in a server that is started if there is none. A long job leaves the last slot to others. Raises
        WarmSparkNotStarted, and what `stop_if_due` raises.
        """
        with self._made_home():
            return take(self.home, self.order, self._spawn, stop_if_due=stop_if_due, say=say, is_long=is_long)

    def start(self, *, say: Callable[[str], object]) -> ServerRecord:
        """The server in use, started if there is none. Raises WarmSparkNotStarted."""
        with self._made_home():
            return start_server(self.home, self.order, self._spawn, stop_if_due=lambda: None, say=say)

    def busy(self, spec: JobSpec, waited: float) -> WarmSparkBusy:
        """The error of a job that waited these seconds for a slot, until its deadline."""
        server, slots = self.home.running(), self.order.slots
        jobs = [] if server is None else jobs_in_slots(server.place, server.order.slots)
        return WarmSparkBusy(
            key=spec.about,
            deadline=spec.deadline,
            minutes=round(waited / 60),
            slots=max(slots - 1, 1) if spec.is_long else slots,
            jobs=", ".join(jobs) or "unknown",
        )

    @contextmanager
    def _made_home(self) -> Iterator[None]:
        """The home and its parents are private, and the home was used just now, so that no task removes it. A full
        disk, or a file system without locks, is named inside.
        """
        for directory in (self.home.root.parent.parent, self.home.root.parent, self.home.root):
            private_directory(directory)
        try:
            os.utime(self.home.root)
            yield
        except OSError as error:
            raise WarmSparkNotStarted(problem=str(error), log=str(self.home.root), tail="") from error

    @contextmanager
    def _spawn(self, directory: Path, order: ServerOrder, alive: int) -> Iterator[subprocess.Popen[bytes]]:
        from tidemark.hooks._submission import Submission

        submission = Submission(
            self.connection,
            spark_log=directory / LOG,
            conf={_POOLS_SETTING: _written_pools(directory), **self.conf},
            packages=",".join(order.packages) or None,
            application_args=[str(self.home.root), str(directory)],
            environment=with_scratch({**self.environment, TOKEN: secrets.token_urlsafe(32)}, make_scratch(directory)),
            inherited=(alive,),
            name="tidemark-warm",
        )
        with submission.started(str(_KEEPER), cwd=str(directory)) as process:
            yield process


def warm_spark(
    settings: TidemarkSettings,
    connection: Connection,
    *,
    conf: Mapping[str, str],
    packages: Sequence[str],
    environment: Mapping[str, str],
) -> WarmSpark:
    """The server for jobs with these settings, whether or not it runs. `environment`: that of a driver."""
    from tidemark.hooks._submission import master_of

    ours = str(Path(tidemark.__file__).parent.parent)
    path = os.pathsep.join(entry for entry in (environment.get("PYTHONPATH"), ours) if entry)
    full = {**_SETTINGS, **conf, **_OURS}
    full["spark.plugins"] = ",".join(filter(None, (conf.get("spark.plugins"), _PLUGIN)))
    full["spark.driver.extraJavaOptions"] = _java_options(conf)
    local = {}
    if master_of(connection).startswith("local"):
        full |= _ON_LOOPBACK
        local = {"SPARK_LOCAL_IP": _LOOPBACK}
    order = ServerOrder(
        settings.spark_slots or _slots(full["spark.driver.memory"]),
        tuple(packages),
        idle=settings.spark_idle,
        starts_within=settings.spark_start,
    )
    shared = {
        "spark": [connection.conn_type, connection.host, connection.port, connection.login, connection.extra],
        "conf": full,
        "packages": [name.strip() for name in (settings.spark_packages or "").split(",")],  # jobs may add their own
        "slots": order.slots,
        "idle": order.idle,
        "python": sys.executable,
        "host": platform.node(),  # hosts may share the directory
        "release": tidemark.__version__,
    }
    digest, family = _digests(shared, environment)
    return WarmSpark(
        ServerHome(homes(settings) / digest),
        connection,
        replace(order, family=family),
        full,
        {**environment, **local, "PYTHONPATH": path},
    )


def _digests(shared: Mapping[str, object], environment: Mapping[str, str]) -> tuple[str, str]:
    """The name of the home, and the family of servers that differ in temporary credentials only; empty without such."""
    counted = {name: value for name, value in environment.items() if name not in _OF_NO_MATTER}
    kept = {name: value for name, value in counted.items() if name not in _RENEWED}
    family = digest_of({**shared, "environment": kept}) if environment.get(_TEMPORARY) else ""
    return digest_of({**shared, "environment": counted}), family


def _written_pools(directory: Path) -> str:
    """The URI of the file that says how the jobs of a server share its cores."""
    file = directory / "pools.xml"
    write_private(file, _POOLS)
    return file.as_uri()


def _java_options(conf: Mapping[str, str]) -> str:
    """Ours, then the user's, which win. Java refuses two collectors, and a large heap needs another than ours."""
    given = conf.get("spark.driver.extraJavaOptions", "")
    small = conf.get("spark.driver.memory", _SETTINGS["spark.driver.memory"]).lower() in _SMALL_HEAPS
    collector = "-XX:+UseSerialGC" if small and not re.search(r"-XX:\+Use\w*GC", given) else ""
    return " ".join(filter(None, (collector, _OF_A_SHARED_JVM, given)))


def homes(settings: TidemarkSettings) -> Path:
    """The directory of all homes of this user: only the user can enter it."""
    return settings.jobs_root / "spark"


def _slots(heap: str) -> int:
    """Jobs at a time: one per core, and one per 512 MB of the heap, within bounds."""
    fitting = _megabytes(heap) // _MEGABYTES_PER_JOB
    return min(max(min(os.cpu_count() or 1, fitting), _LEAST_SLOTS), _MOST_SLOTS)


def _megabytes(size: str) -> int:
    """A size as Spark reads one. Any other text counts as the default; Spark itself refuses it."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", size.strip().lower()) or re.fullmatch(r"(\d+)(g)", _HEAP)
    assert found is not None
    return int(int(found[1]) * {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}[found[2]])
