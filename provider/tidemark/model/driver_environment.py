"""The part of the worker's environment that its children get: drivers, and a JVM with Delta Kernel. Drivers run users'
functions, and a worker's environment has Airflow's connections, metadata database and keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["BEGINNINGS", "ENDINGS", "NAMES", "NEVER", "DriverEnvironment", "driver_environment"]

NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "KUBECONFIG", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "TIDEMARK_KILL_AT", "TIDEMARK_KILL_ONCE",
    }
)  # fmt: skip
"""Variables of the process, paths of libraries and certificates, and the points at which tests kill a process."""

BEGINNINGS = (
    "LC_", "PYTHON", "JAVA_", "SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "KRB5", "KUBERNETES_SERVICE_", "AWS_",
    "GOOGLE_", "AZURE_", "SSL_",
)  # fmt: skip
"""Variables of Python, Java, Spark, clusters and storage."""

ENDINGS = ("_PROXY", "_proxy")

NEVER = re.compile(r"_*AIRFLOW_.*|TIDEMARK_(?!KILL_AT$|KILL_ONCE$).*", re.IGNORECASE | re.DOTALL)
_OTHER_SPARKS = frozenset(
    {
        "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT",
        "PYSPARK_GATEWAY_SECRET", "MASTER",
    }
)  # fmt: skip


@dataclass(frozen=True)
class DriverEnvironment:
    """A driver's environment. `passed` has values and is not printed. `left_out`: names, sorted."""

    passed: Mapping[str, str] = field(repr=False)
    left_out: tuple[str, ...]

    @property
    def left_out_text(self) -> str:
        """The names of variables that do not pass, in one line."""
        return ", ".join(name if name.isprintable() else repr(name) for name in self.left_out)


def driver_environment(worker: Mapping[str, str], named: Sequence[str] = ()) -> DriverEnvironment:
    """The part of the worker's environment that passes: the names of this module, and `named` ones, which may end in
    `*` (`TEAM_*`). Variables of Airflow, of Tidemark and of another Spark session never pass.
    """
    passed = {name: value for name, value in worker.items() if _passes(name, named)}
    return DriverEnvironment(passed, tuple(sorted(set(worker) - set(passed))))


def _passes(name: str, named: Sequence[str]) -> bool:
    if name in NAMES:
        return True
    if name in _OTHER_SPARKS or NEVER.fullmatch(name):
        return False
    if name.startswith(BEGINNINGS) or name.endswith(ENDINGS):
        return True
    return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in named)
