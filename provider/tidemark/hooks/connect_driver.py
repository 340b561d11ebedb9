"""A driver behind Spark Connect: a Python process without a JVM, in a process group of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.utils.log.logging_mixin import LoggingMixin

import tidemark
from tidemark.errors import ConnectClientNotFound, InvalidArgument
from tidemark.hooks._driver_log import TAIL_LINES, follow

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = [
    "SERVER_URL",
    "SPARK_SETTINGS",
    "ConnectDriver",
    "end_session",
    "is_connect",
    "missing_client",
    "require_connect_client",
    "server_address",
    "server_url",
]

SERVER_URL = "SPARK_REMOTE"
SPARK_SETTINGS = "TIDEMARK_SPARK_SETTINGS"
_LEAVE = Path(tidemark.__file__).parent / "jobs" / "remote_session.py"
_LEAVE_SECONDS = 90.0
_CLIENT = ("pyspark", "grpc", "grpc_status", "pandas", "delta")


def is_connect(connection: Connection) -> bool:
    """Whether a Spark connection means a Spark Connect server: by its type, or by a host `sc://…`."""
    return connection.conn_type == "spark_connect" or (connection.host or "").startswith("sc://")


def server_url(connection: Connection, session_id: str | None = None) -> str:
    """The URL with the connection's user, token and `use_ssl`; not for arguments, logs or messages.

    Raises InvalidArgument for an invalid host.
    """
    url = urlsplit(connection.host if "://" in (connection.host or "") else f"sc://{connection.host or ''}")
    if url.scheme != "sc" or not url.hostname or url.path.strip("/"):
        raise InvalidArgument(argument="host", value=connection.host, problem="a Spark Connect server is a host name")
    port = connection.port or url.port
    parameters = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": str(connection.extra_dejson.get("use_ssl") or "").lower(),
        "session_id": session_id,
    }
    given = ";".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
    return f"sc://{url.hostname}{f':{port}' if port else ''}/;{given}".rstrip(";")


def server_address(connection: Connection) -> str:
    """`sc://host:port`, for messages."""
    return _address(server_url(connection))


def require_connect_client() -> None:
    """Nothing, or ConnectClientNotFound if the driver could not be a client. It imports nothing."""
    if missing := missing_client():
        command = "pip install 'airflow-provider-tidemark[spark]' 'pyspark[connect]==4.2.0'"
        raise ConnectClientNotFound(missing=", ".join(missing), command=command)


def missing_client() -> list[str]:
    """The packages of the Connect client that this Python lacks. It imports nothing."""
    return [name for name in _CLIENT if importlib.util.find_spec(name) is None]


class ConnectDriver(LoggingMixin):
    """One driver. Lines of the job that begin with `tidemark: ` go to the task log; everything goes to `spark_log`.

    `url` names server and session. It is passed by environment, as all secrets are; `environment` has the rest of the
    driver's variables. `inherited`: descriptors that live as long as the driver.
    """

    def __init__(
        self,
        url: str,
        *,
        spark_log: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.url = url
        self.spark_log = spark_log
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._arguments = tuple(arguments)
        self._environment = {**environment, SERVER_URL: url}
        self._inherited = tuple(inherited)
        self._process: subprocess.Popen[str] | None = None

    @property
    def server(self) -> str:
        """The server's address without token or session."""
        return _address(self.url)

    @property
    def process_id(self) -> int | None:
        """The leader of the process group; None before the start."""
        return self._process.pid if self._process is not None else None

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def submit(self, application: str, *, cwd: str) -> None:
        """Runs `application` in `cwd` to its end, with any exit code."""
        process = self._process = subprocess.Popen(
            [sys.executable, application, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            env=self._environment,
            pass_fds=self._inherited,
            start_new_session=True,
        )
        with process:
            follow(process.stdout or (), self.spark_log, self.tail, partial(self.log.info, "%s"))

    def settle(self, *, left: bool) -> bool:
        """Whether nothing of the driver's session runs any more. `left`: the driver has left it. The driver must be
        dead.
        """
        return left or self.end_session()

    def end_session(self) -> bool:
        """Whether the server runs nothing of the driver's session any more, after its work was cancelled. The driver
        must be dead. Idempotent: a second run is harmless.
        """
        return self._process is None or end_session(self._environment, self.spark_log)


def end_session(environment: Mapping[str, str], spark_log: Path) -> bool:
    """Whether the server of the environment runs nothing of its session any more, after its work was cancelled.

    A session that does not exist is no error. Idempotent: a second run is harmless.
    """
    try:
        done = subprocess.run(
            [sys.executable, str(_LEAVE)],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=_LEAVE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode != 0:
        with spark_log.open("a", encoding="utf-8") as log:
            log.write(done.stdout + done.stderr)
    return done.returncode == 0


def _address(url: str) -> str:
    return f"sc://{urlsplit(url).netloc}"
