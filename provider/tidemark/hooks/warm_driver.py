"""A driver behind the warm Spark of this host: it has a slot there, and ends with the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from tidemark.hooks._process_group import end_group
from tidemark.hooks.connect_driver import ConnectDriver
from tidemark.warm_spark.home import LOG, SILENCE, Pulse, end_server, is_alive
from tidemark.warm_spark.start import Taken

__all__ = ["WarmDriver"]

_SECONDS_BETWEEN_LOOKS = 1.0


class WarmDriver(ConnectDriver):
    """As ConnectDriver, with a session in the slot that was `taken`. `about`: the job, for those that wait for slots.

    The driver is ended if the server ends. A server without a sign of life for two minutes is ended first.
    """

    def __init__(
        self,
        taken: Taken,
        *,
        about: str,
        spark_log: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
    ) -> None:
        self.session_id = str(uuid4())
        super().__init__(
            taken.server.url(self.session_id),
            spark_log=spark_log,
            arguments=arguments,
            environment=environment,
            inherited=(*inherited, taken.slot.descriptor),
        )
        self._taken = taken
        self._ended = threading.Event()
        self.server_ended = False
        taken.slot.claim(self.session_id, about)

    @property
    def server_log(self) -> str:
        """The server's own log, on this host."""
        return str(self._taken.server.place / LOG)

    def submit(self, application: str, *, cwd: str) -> None:
        """Runs `application` in `cwd` to its end, with any exit code, or to that of the server."""
        watch = threading.Thread(target=self._watch, name="tidemark-warm-spark", daemon=True)
        watch.start()
        try:
            super().submit(application, cwd=cwd)
        finally:
            self._ended.set()

    def settle(self, *, left: bool) -> bool:
        """True: nothing of the session runs any more, and its slot is free. A server that does not confirm it is sick,
        and is ended with all that runs in it.
        """
        if not super().settle(left=left) and is_alive(self._taken.server):
            self.retire_server()
            end_server(self._taken.server)
            while is_alive(self._taken.server):
                time.sleep(0.1)
        self._taken.slot.clear()
        return True

    def retire_server(self) -> None:
        """The server takes no new job, and ends after those that it runs. A second run is harmless."""
        self._taken.home.retire(self._taken.server)

    def _watch(self) -> None:
        server = self._taken.server
        pulse = Pulse(server, SILENCE)
        while not self._ended.wait(_SECONDS_BETWEEN_LOOKS):
            if pulse.stands_still():
                self.log.error("The warm Spark of this host did not respond for two minutes and is ended.")
                end_server(server)
            if not is_alive(server):
                self.server_ended = True
                end_group(self)
                return
