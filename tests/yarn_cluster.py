"""A real YARN of the tests' own: a resource manager and a node manager on this host, without HDFS and Docker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyspark

from tests.ports import lasting_port
from tidemark.hooks.yarn import ResourceManager

__all__ = ["HOST", "SPARK_CONF", "YarnCluster", "running_yarn"]

_REPOSITORY = Path(__file__).parents[1]
_SECONDS_TO_FETCH = 900  # 90 MB
JARS = _REPOSITORY / ".cache" / "yarn"  # put there by .ci/fetch-yarn
HOST = "127.0.0.1"
SPARK_CONF: Mapping[str, str] = {
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",  # both sides see them, so nothing is uploaded
    "spark.pyspark.driver.python": sys.executable,
    "spark.pyspark.python": sys.executable,
    "spark.driver.memory": "768m",
    "spark.driver.memoryOverhead": "384m",
    "spark.executor.instances": "1",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""The settings with which a small machine runs a driver and an executor."""

_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_OPEN = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-exports=java.base/sun.net.dns=ALL-UNNAMED")
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_OPEN)
_LOG4J = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n
"""
_SECONDS_TO_START = 120.0


@dataclass
class YarnCluster:
    """A resource manager, and a node manager that can be killed and started again."""

    directory: Path
    web: int = field(default_factory=lasting_port)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        """HADOOP_CONF_DIR."""
        return self.directory / "conf"

    @property
    def address(self) -> str:
        """The address of YARN's REST interface."""
        return f"http://{HOST}:{self.web}"

    @property
    def manager(self) -> ResourceManager:
        """The client of the tests."""
        return ResourceManager((self.address,))

    def connection(self, **extra: str) -> str:
        """An Airflow connection as JSON."""
        return json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", **extra}})

    def applications(self) -> list[dict[str, Any]]:
        """All applications, as YARN tells them."""
        told = _get(f"{self.address}/ws/v1/cluster/apps")["apps"]
        return list(told["app"]) if told else []

    def processes(self, application: str, word: str) -> list[psutil.Process]:
        """The JVMs of the application whose command line has the word."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = " ".join(process.info["cmdline"] or ())
            if application.removeprefix("application_") in words and word in words and words.startswith(("/", "java")):
                found.append(process)
        return [one for one in found if "bash" not in one.name()]

    def start_node(self) -> None:
        """Starts the node manager, and waits until it is known."""
        self._start("node", _NODE, "-Xmx256m")
        self._until_a_node_runs()

    def kill_node(self) -> None:
        """Kills the node manager with -9. Its containers stay."""
        self._end("node", signal.SIGKILL)

    def start(self) -> None:
        """Starts both."""
        self._start("manager", _MANAGER, "-Xmx384m")
        self.start_node()

    def stop(self) -> None:
        """Ends both, and all that the containers left."""
        for name in list(self._running):
            self._end(name, signal.SIGTERM)
        for process in psutil.process_iter(["cmdline", "cwd"]):
            if str(self.directory) in f"{process.info['cwd']} {process.info['cmdline']}" and process.pid != os.getpid():
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def _until_a_node_runs(self) -> None:
        until = time.monotonic() + _SECONDS_TO_START
        while True:
            with suppress(OSError, urllib.error.URLError, ValueError):
                nodes = (_get(f"{self.address}/ws/v1/cluster/nodes")["nodes"] or {}).get("node", [])
                if any(node["state"] == "RUNNING" for node in nodes):
                    return
            for name, process in self._running.items():
                assert process.poll() is None, self._log(name).read_text(errors="replace")[-3000:]
            assert time.monotonic() < until, self._log("manager").read_text(errors="replace")[-3000:]
            time.sleep(0.5)

    def _start(self, name: str, main: str, *options: str) -> None:
        classpath = f"{self.conf}:{JARS}/*"
        with self._log(name).open("ab") as output:
            self._running[name] = subprocess.Popen(
                ["java", *_JVM, *options, "-cp", classpath, main],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**os.environ, "HADOOP_CONF_DIR": str(self.conf), "YARN_CONF_DIR": str(self.conf)},
                start_new_session=True,
            )

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"


@contextmanager
def running_yarn(directory: Path) -> Iterator[YarnCluster]:
    """A running YARN, which ends with the block. Jars that cannot be fetched are a failure: a skip would hide it."""
    subprocess.run([_REPOSITORY / ".ci/fetch-yarn"], check=True, timeout=_SECONDS_TO_FETCH)
    cluster = YarnCluster(directory)
    _configure(cluster)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def _configure(cluster: YarnCluster) -> None:
    home, conf = cluster.directory, cluster.conf
    conf.mkdir(parents=True)
    for name in ("local", "logs", "staging"):
        (home / name).mkdir()
    ports = {
        f"yarn.resourcemanager.{name}.address": f"{HOST}:{lasting_port()}"
        for name in ("scheduler", "resource-tracker", "admin")
    }
    nodes = {
        f"yarn.nodemanager.{name}": f"{HOST}:{lasting_port()}"
        for name in ("address", "localizer.address", "webapp.address", "collector-service.address")
    }
    site = {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.address": f"{HOST}:{lasting_port()}",
        "yarn.resourcemanager.webapp.address": f"{HOST}:{cluster.web}",
        **ports,
        "yarn.resourcemanager.scheduler.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
        ),
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.resourcemanager.nm.liveness-monitor.interval-ms": "1000",
        "yarn.nodemanager.hostname": HOST,
        **nodes,
        "yarn.nodemanager.resource.memory-mb": "6144",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.local-dirs": str(home / "local"),
        "yarn.nodemanager.log-dirs": str(home / "logs"),
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,PYSPARK_PYTHON,HOME",
    }
    _write(conf / "yarn-site.xml", site)
    _write(conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(home / "tmp")})
    (conf / "log4j.properties").write_text(_LOG4J)


def _write(file: Path, properties: Mapping[str, str]) -> None:
    told = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    file.write_text(f"<configuration>{told}</configuration>")


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
