"""The part of the worker's environment that a driver gets. A driver runs users' functions, and a worker's environment
has Airflow's connections, metadata database and keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.errors import InvalidArgument
from tidemark.failpoints import KILL_AT, KILL_ONCE

__all__ = ["BEGINNINGS", "ENDINGS", "NAMES", "DriverEnvironment", "driver_environment", "names_from"]

NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "KUBECONFIG", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", KILL_AT, KILL_ONCE,
    }
)  # fmt: skip
"""Variables of the process, paths of libraries and certificates, and the points at which tests kill a process."""

BEGINNINGS = (
    "LC_", "PYTHON", "JAVA_", "SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "KRB5", "KUBERNETES_SERVICE_", "AWS_",
    "GOOGLE_", "AZURE_", "SSL_",
)  # fmt: skip
"""Variables of Python, Java, Spark, clusters and storage."""

ENDINGS = ("_PROXY", "_proxy")

_NEVER = re.compile(r"_*AIRFLOW_.*|TIDEMARK_(?!KILL_AT$|KILL_ONCE$).*", re.IGNORECASE | re.DOTALL)
_OTHER_SPARKS = frozenset(
    {
        "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT",
        "PYSPARK_GATEWAY_SECRET", "MASTER",
    }
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


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


def names_from(given: Any) -> tuple[str, ...]:
    """The names in the setting `driver_environment`: a list, its JSON, or text with commas or white space.

    Raises InvalidArgument if it is no list, or has a name that is none or may never pass.
    """
    names = _listed(given)
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            shown = str(name).partition("=")[0]
            raise _refused(shown, "each must be a name of a variable, or the beginning of some followed by *")
        if _NEVER.fullmatch(name.rstrip("*")):
            raise _refused(name, "variables of Airflow and Tidemark never pass, since they have connections and keys")
    return tuple(names)


def _listed(given: Any) -> list[Any]:
    if isinstance(given, str) and given.lstrip()[:1] in ("[", "{", '"'):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    if isinstance(given, str):
        return given.replace(",", " ").split()
    if not isinstance(given, list | tuple):
        raise _refused("(not shown)", 'it must be a list of names: ["SHOP_URL"] or SHOP_URL, TEAM_*')
    return list(given)


def _passes(name: str, named: Sequence[str]) -> bool:
    if name in NAMES:
        return True
    if name in _OTHER_SPARKS or _NEVER.fullmatch(name):
        return False
    if name.startswith(BEGINNINGS) or name.endswith(ENDINGS):
        return True
    return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in named)


def _refused(value: str, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="driver_environment", value=value, problem=problem)
