"""Jobs of this host whose worker is gone: whether a process of them is left, by the locks of their files."""

from __future__ import annotations

import logging
import socket
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.hooks._drivers import Drivers, JobFiles
from tidemark.hooks._files import private_directory
from tidemark.hooks._job_files import HELD, WORKER
from tidemark.warm_spark.home import server_in
from tidemark.warm_spark.locks import is_held

if TYPE_CHECKING:
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["JobsOfHost"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PATIENCE = 45.0  # seconds; longer than a driver takes to end itself
_SECONDS_BETWEEN_LOOKS = 0.2

log = logging.getLogger(__name__)


class JobsOfHost:
    """The host of the jobs under `settings.jobs_root`, for `tidemark.streams.worker.hosts`. A driver gets `patience`
    seconds to end.
    """

    def __init__(self, settings: TidemarkSettings, *, patience: float = _PATIENCE) -> None:
        self._settings, self._patience = settings, patience

    @cached_property
    def name(self) -> str | None:
        """Host name, boot of its kernel, and the directory of jobs: containers of one host have one of their own. None
        without Linux.
        """
        try:
            boot = _BOOT.read_text(encoding="ascii").strip()
            root = private_directory(Path(self._settings.jobs_root)).stat()
        except FileNotFoundError:
            return None
        return f"{socket.gethostname()} (boot {boot}, jobs {root.st_dev}:{root.st_ino})"

    def end(self, job_id: str) -> bool:
        """Whether the job can write no more.

        1. A worker that holds its file sees the end itself: False. 2. The cancel marker stays. So a driver that starts
        later stops before it writes, and one that runs stops within seconds. 3. No process holds the job's file. 4. Its
        session in a server is left. A file system without locks tells nothing: False. A second call is harmless.
        """
        directory = Path(self._settings.jobs_root) / job_id
        try:
            if is_held(directory / WORKER):
                return False
            directory.with_name(f"{job_id}.cancel").touch(mode=0o600)
            until = time.monotonic() + self._patience
            while is_held(directory / HELD):
                if time.monotonic() > until:
                    return False
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            return self._has_left(directory)
        except OSError as error:
            log.warning("It is not known whether job %s still runs: %s", job_id, error)
            return False

    def _has_left(self, directory: Path) -> bool:
        """Whether nothing of the job runs in a server."""
        from tidemark.hooks._submission import spark_connection
        from tidemark.hooks.connect_driver import end_session, server_url

        files = JobFiles(directory, ())
        session = files.session()
        if session is None:
            return True
        connection = spark_connection(self._settings.spark_conn_id, self._settings.spark_master)
        url = server_url(connection, session.session_id) if not session.place else None
        if session.place:
            server = server_in(Path(session.place))
            if server is None:
                return True
            url = server.url(session.session_id)
        return url is not None and end_session(Drivers(self._settings, connection).to_leave(url), files.spark_log)
