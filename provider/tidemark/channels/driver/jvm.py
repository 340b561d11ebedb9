"""A small JVM with Delta Kernel, for a process without a Spark driver of its own. It has no Spark session.

It ends with the process, also if that is killed: it waits for the end of its standard input.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.channels.driver.kernel import KernelEngine
from tidemark.errors import IngestUnavailable

__all__ = ["start_engine"]

_KERNEL = ("io.delta_delta-kernel-api-", "io.delta_delta-kernel-defaults-", "io.delta_delta-storage-")
_OLDER = ("com.fasterxml.jackson.core_", "org.apache.hadoop_hadoop-client-", "org.slf4j_", "org.apache.logging")
_PACKAGE = ("io.delta", "delta-kernel-defaults", "4.4.0")
_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Dlog4j2.level=ERROR")
_SHOWN = 500  # bytes of what a JVM said before its end
_USE_THE_SERVICE = "Send the rows to the ingest service instead (service=…), which commits in its own Spark driver."


def start_engine(
    hadoop: Mapping[str, str], *, ivy: Path | None = None, seconds_to_answer: float = 60.0
) -> KernelEngine:
    """A new JVM in about two seconds, and its engine. `hadoop`: settings of file systems, by Hadoop's names.

    `ivy`: the directory of Ivy's jars (default: Spark's own). Missing jars of Delta Kernel are fetched once.
    `seconds_to_answer`: a JVM that hangs longer counts as dead. Raises IngestUnavailable without Java, or without the
    jars of PySpark.
    """
    home = _spark_jars()
    jars = _kernel_jars(home, ivy or Path.home() / ".ivy2.5.2")
    gateway = _gateway(home, [str(home / "*"), *map(str, jars)], seconds_to_answer)
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
        timeout=300,
    )


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _gateway(home: Path, classpath: list[str], seconds_to_answer: float) -> Any:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from py4j.protocol import Py4JError

    (py4j,) = home.glob("py4j-*.jar")
    log = tempfile.TemporaryFile()  # noqa: SIM115 - the JVM writes it as long as it runs
    try:
        port, token = launch_gateway(
            jarpath=str(py4j),
            classpath=":".join(classpath),
            javaopts=list(_OPTIONS),
            java_path=_java(),
            die_on_exit=True,
            enable_auth=True,
            create_new_process_group=True,
            redirect_stdout=log,
            redirect_stderr=log,
        )
    except (OSError, Py4JError, ValueError) as error:
        log.seek(0)
        said = log.read()[-_SHOWN:].decode(errors="replace").strip()
        remedy = f"Install Java 17, or set JAVA_HOME. {_USE_THE_SERVICE}"
        raise IngestUnavailable(problem=f"no JVM could be started: {said or error}", remedy=remedy) from None
    parameters = GatewayParameters(
        port=port, auth_token=token, auto_convert=True, read_timeout=seconds_to_answer
    )  # without a timeout even the garbage collection of Python would wait for a JVM that hangs
    return JavaGateway(gateway_parameters=parameters)
