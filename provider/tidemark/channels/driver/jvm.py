"""A small JVM with Delta Kernel, for a process without a Spark driver of its own. It has no Spark session.

It ends with the process, even if that is killed: it waits for the end of its standard input. Of the environment it gets
what a driver gets.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tidemark.channels.driver.kernel import KernelEngine
from tidemark.errors import IngestUnavailable
from tidemark.model.driver_environment import driver_environment

__all__ = ["start_engine"]

_KERNEL = ("io.delta_delta-kernel-api-", "io.delta_delta-kernel-defaults-", "io.delta_delta-storage-")
_OLDER = ("com.fasterxml.jackson.core_", "org.apache.hadoop_hadoop-client-", "org.slf4j_", "org.apache.logging")
_PACKAGE = ("io.delta", "delta-kernel-defaults", "4.4.0")
_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Dlog4j2.level=ERROR")
_SECONDS_TO_END = 10.0
_SHOWN = 500  # characters of what a JVM said before its end
_USE_THE_SERVICE = "Send the rows to the ingest service instead (lake.ingest_service), which commits in its own driver."


def start_engine(
    hadoop: Mapping[str, str],
    *,
    ivy: Path | None = None,
    seconds_to_start: float = 60.0,
    seconds_to_answer: float = 60.0,
) -> KernelEngine:
    """A new JVM in about two seconds, and its engine. `hadoop`: settings of file systems, by Hadoop's names.

    `ivy`: the directory of Ivy's jars (default: Spark's own). Missing jars of Delta Kernel are fetched once.
    `seconds_to_start`: a start that hangs longer is ended. `seconds_to_answer`: a JVM that hangs longer counts as dead.
    Raises IngestUnavailable without Java, without the jars of PySpark, or if the JVM does not start.
    """
    home = _spark_jars()
    jars = _kernel_jars(home, ivy or Path.home() / ".ivy2.5.2")
    gateway = _gateway(home, [str(home / "*"), *map(str, jars)], seconds_to_start, seconds_to_answer)
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    for name, value in hadoop.items():
        configuration.set(name, value)
    return KernelEngine(gateway.jvm, configuration)


def _spark_jars() -> Path:
    try:
        import pyspark
    except ImportError:
        raise IngestUnavailable(problem="PySpark is not installed", remedy=_USE_THE_SERVICE) from None
    home = Path(pyspark.__file__).parent / "jars"
    if not list(home.glob("hadoop-client-api-*.jar")):
        problem = "this PySpark has no jars, as the package pyspark-client has none"
        raise IngestUnavailable(problem=problem, remedy=f"Install pyspark. {_USE_THE_SERVICE}")
    return home


def _kernel_jars(home: Path, ivy: Path) -> list[Path]:
    found = _found(ivy / "jars")
    if found is None:
        _fetch(home, ivy)
        found = _found(ivy / "jars")
    if found is None:
        remedy = f"Give this host access to a Maven repository, or put the jars into {ivy / 'jars'}. {_USE_THE_SERVICE}"
        raise IngestUnavailable(problem="the jars of Delta Kernel are missing and could not be fetched", remedy=remedy)
    return found


def _found(directory: Path) -> list[Path] | None:
    """The jars beside those of Spark: Kernel, and the file systems of Spark's packages."""
    jars = sorted(path for path in directory.glob("*.jar") if not path.name.startswith(_OLDER))
    jars += sorted(directory.glob("com.fasterxml.jackson.datatype_jackson-datatype-jdk8-*.jar"))
    has = all(any(path.name.startswith(f"{name}{_PACKAGE[2]}") for path in jars) for name in _KERNEL)
    return jars if has else None


def _fetch(home: Path, ivy: Path) -> None:
    main = [_java(), "-cp", str(home / "*"), "org.apache.ivy.Main", "-warn", "-cache", str(ivy / "cache")]
    place = str(ivy / "jars" / "[organization]_[artifact]-[revision].[ext]")
    subprocess.run(
        [*main, "-dependency", *_PACKAGE, "-confs", "default", "-retrieve", place],
        check=False,
        capture_output=True,
        env=_environment(),
        timeout=300,
    )


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _environment() -> dict[str, str]:
    return dict(driver_environment(os.environ).passed)


def _gateway(home: Path, classpath: list[str], seconds_to_start: float, seconds_to_answer: float) -> Any:
    """A JVM that ends with this process.

    Py4J's own start runs a function between fork and exec. There the threads of gRPC, which Spark Connect has, break
    off.
    """
    from py4j.java_gateway import GatewayParameters, JavaGateway, OutputConsumer, ProcessConsumer

    (py4j,) = home.glob("py4j-*.jar")
    command = [_java(), *_OPTIONS, "-classpath", ":".join([str(py4j), *classpath]), "py4j.GatewayServer"]
    log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - the JVM writes it as long as it runs
    try:
        process = subprocess.Popen(
            [*command, "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            process_group=0,
        )
    except OSError as error:
        raise _not_started(str(error)) from None
    assert process.stdout is not None
    port, token = _address(process, log, seconds_to_start)
    OutputConsumer(log, process.stdout, daemon=True).start()
    ProcessConsumer(process, [log], daemon=True).start()  # it holds the pipe, at whose end the JVM ends
    parameters = GatewayParameters(
        port=port, auth_token=token, auto_convert=True, read_timeout=seconds_to_answer
    )  # without a timeout even the garbage collection of Python would wait for a JVM that hangs
    return JavaGateway(gateway_parameters=parameters)


def _address(process: subprocess.Popen[bytes], log: IO[str], seconds: float) -> tuple[int, str]:
    """Port and token, which a JVM says first. A JVM that is late is killed, with its children."""
    assert process.stdout is not None
    hangs = threading.Event()

    def end() -> None:
        hangs.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(seconds, end)
    timer.start()
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    timer.cancel()
    timer.join()
    if port.isdigit() and token and not hangs.is_set():
        return int(port), token.decode()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        end()
    log.seek(0)
    said = log.read()[-_SHOWN:].strip() or "it ended without output"
    raise _not_started(f"it hangs, and was ended after {seconds:g} seconds" if hangs.is_set() else said)


def _not_started(problem: str) -> IngestUnavailable:
    remedy = f"Install Java 17, or set JAVA_HOME. {_USE_THE_SERVICE}"
    return IngestUnavailable(problem=f"no JVM could be started: {problem}", remedy=remedy)
