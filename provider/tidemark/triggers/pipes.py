"""Waiting in the triggerer for files of pipes, and watching them from an asset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import TriggerEvent

from tidemark.errors import TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.triggers._announcing_files import AnnouncedFiles, next_step
from tidemark.triggers._waiting import (
    LONGEST_POLL,
    POLLER,
    WaitTrigger,
    answer_within,
    pause_until_next,
    seconds_of,
)
from tidemark.triggers._watching import SETTLED, Watcher

if TYPE_CHECKING:
    from tidemark.pipes.worker.pending import PendingFiles
    from tidemark.triggers._poller import SourcePoller

__all__ = ["POLL_INTERVAL", "RENEW_AFTER", "PipeFilesEventTrigger", "PipePendingTrigger"]

POLL_INTERVAL = 60.0
RENEW_AFTER = 1800.0


class PipePendingTrigger(WaitTrigger):
    """Fires when files wait for the pipe; PipePendingSensor defers to it.

    Value of its event: {pipe, location, files, first, oldest_at, unfinished}. Errors, deadline and interval: see
    WaitTrigger.
    """

    def __init__(
        self,
        *,
        pipe: str,
        end: datetime | str,
        at_least: int = 1,
        list_files: bool | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        **waiting: Any,
    ) -> None:
        super().__init__(conn_id=conn_id, end=end, **waiting)
        self.pipe = pipe
        self.at_least = at_least
        self.list_files = list_files

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values only."""
        mine = {"pipe": self.pipe, "at_least": self.at_least, "list_files": self.list_files}
        return ("tidemark.triggers.pipes.PipePendingTrigger", {**mine, **self.waiting()})

    @property
    def subject(self) -> str:
        """The pipe."""
        return f"Pipe {self.pipe}"

    def request(self, poller: SourcePoller) -> Future[PendingFiles]:
        """A look whose listing is shared by all who wait for files of the location."""
        return poller.pipes.ask(self.pipe, list_files=self.list_files, as_new=self.poll_interval / 2)

    def value_of(self, answer: PendingFiles) -> dict[str, Any] | None:
        """The files, if they are enough or a batch waits for its end."""
        return answer.to_plain() if answer.count >= self.at_least or answer.unfinished else None


class PipeFilesEventTrigger(Watcher):
    """For an AssetWatcher: an event when a pipe's location has new files, once for each set of names.
    `tidemark.assets.pipe_files_asset` makes asset and watcher.

    Files that are not taken are announced every `renew_after` seconds. A batch of the pipe that stays unfinished for an
    hour is announced, too. The asset's state store keeps the last announcement, so a restart repeats nothing. It is
    written after the event, so a restart between the two repeats the event and does not lose it.

    Only the removal of the watcher ends it. A problem of pipe, location or store is written to the triggerer's log,
    once for each message, and the trigger tries again.

    :param pipe: name of the pipe; not a template.
    :param poll_interval: seconds between looks.
    """

    def __init__(
        self,
        *,
        pipe: str,
        conn_id: str = DEFAULT_CONN_ID,
        poll_interval: float = POLL_INTERVAL,
        renew_after: float = RENEW_AFTER,
    ) -> None:
        super().__init__()
        self.pipe = pipe
        self.conn_id = conn_id
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.renew_after = seconds_of("renew_after", renew_after)
        self._last: AnnouncedFiles | None = None
        self._told: PendingFiles | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values, the same ones for the same watcher: Airflow tells watchers apart by them."""
        return (
            "tidemark.triggers.pipes.PipeFilesEventTrigger",
            {
                "pipe": self.pipe,
                "conn_id": self.conn_id,
                "poll_interval": self.poll_interval,
                "renew_after": self.renew_after,
            },
        )

    @property
    def subject(self) -> str:
        """The pipe."""
        return f"Pipe {self.pipe}"

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Events for as long as the watcher exists."""
        module = await asyncio.to_thread(import_module, POLLER)
        self._last = AnnouncedFiles.from_plain(await self.recall())
        with module.shared_poller(self.conn_id) as poller:
            while True:
                payload = await self._poll(poller)
                if payload is not None and self._last is not None:
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                    await asyncio.sleep(min(SETTLED, self.poll_interval))
                    await self.keep(self._last.to_plain())
                await asyncio.sleep(pause_until_next(self.poll_interval, self.pipe))

    async def on_kill(self) -> None:
        """The watcher is removed, as by a pause. The next one announces existing files, even under the same id."""
        if self._last is not None:
            await self.keep(replace(self._last, watch="").to_plain())

    async def _poll(self, poller: SourcePoller) -> dict[str, Any] | None:
        """The payload of the event that is due."""
        try:
            asked = poller.pipes.ask(self.pipe, list_files=None, as_new=self.poll_interval / 2)
            pending = await answer_within(asked, LONGEST_POLL)
        except (TidemarkError, AirflowException, OSError) as error:
            self.say(str(error))
            return None
        self.say(None)
        self._last, reason = next_step(
            pending,
            self._last,
            self._told,
            now=datetime.now(UTC),
            watch=self.watch,
            renew_after=timedelta(seconds=self.renew_after),
        )
        self._told = pending
        return None if reason is None else {**pending.to_plain(), "reason": reason.value}
