"""Watching a stream from an asset: DAGs that start when there is something to consume (R126)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import TriggerEvent

from tidemark.errors import TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.triggers._announcing import Announced, Intervals, Reason, due, payload_of
from tidemark.triggers._waiting import LONGEST_POLL, POLLER, answer_within, pause_until_next, seconds_of
from tidemark.triggers._watching import SETTLED, Watcher

if TYPE_CHECKING:
    from tidemark.streams.worker.observation import Observation
    from tidemark.triggers._poller import SourcePoller

__all__ = ["KEEP_FRESH_AFTER", "POLL_INTERVAL", "RENEW_AFTER", "StreamDataEventTrigger"]

POLL_INTERVAL = 30.0  # the source's own: at most one run in 30 seconds (R126)
RENEW_AFTER = 600.0
KEEP_FRESH_AFTER = 12 * 3600.0  # the source's health check (R126)


class StreamDataEventTrigger(Watcher):
    """For an AssetWatcher: an event when the stream has data, once for each offset; `tidemark.assets.stream_data_asset`
    makes asset and watcher.

    While the offset does not move, it is announced every `renew_after` seconds, unless a transaction holds the stream
    with a live lease. A stream without data whose offset has not moved for `keep_fresh_after` seconds is announced,
    too. So an empty run moves it before it becomes stale. The asset's state store keeps the last announcement, so a
    restart repeats nothing. It is written after the event, so a restart between the two repeats the event and does not
    lose it.

    Only the removal of the watcher ends it. A problem of stream, source or store is written to the triggerer's log,
    once for each message, and the trigger tries again.

    :param stream: name of the stream; not a template.
    :param poll_interval: seconds between polls.
    """

    def __init__(
        self,
        *,
        stream: str,
        conn_id: str = DEFAULT_CONN_ID,
        poll_interval: float = POLL_INTERVAL,
        renew_after: float = RENEW_AFTER,
        keep_fresh_after: float = KEEP_FRESH_AFTER,
    ) -> None:
        super().__init__()
        self.stream = stream
        self.conn_id = conn_id
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.renew_after = seconds_of("renew_after", renew_after)
        self.keep_fresh_after = seconds_of("keep_fresh_after", keep_fresh_after)
        self._last: Announced | None = None

    @property
    def subject(self) -> str:
        """The stream."""
        return f"Stream {self.stream}"

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values, the same ones for the same watcher: Airflow tells watchers apart by them."""
        return (
            "tidemark.triggers.watchers.StreamDataEventTrigger",
            {
                "stream": self.stream,
                "conn_id": self.conn_id,
                "poll_interval": self.poll_interval,
                "renew_after": self.renew_after,
                "keep_fresh_after": self.keep_fresh_after,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Events for as long as the watcher exists."""
        module = await asyncio.to_thread(import_module, POLLER)
        self._last = Announced.from_plain(await self.recall())
        with module.shared_poller(self.conn_id) as poller:
            while True:
                said = await self._poll(poller, self._last)
                if said is not None:
                    self._last, payload = said
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]
                    await asyncio.sleep(min(SETTLED, self.poll_interval))
                    await self.keep(self._last.to_plain())
                await asyncio.sleep(pause_until_next(self.poll_interval, self.stream))

    async def on_kill(self) -> None:
        """The watcher is removed, as by a pause. The next one announces existing data, even under the same id."""
        if self._last is not None:
            await self.keep(replace(self._last, watch="").to_plain())

    async def _poll(self, poller: SourcePoller, last: Announced | None) -> tuple[Announced, dict[str, Any]] | None:
        """The announcement that is due, and its event's payload."""
        try:
            observation = await answer_within(poller.observe(self.stream), LONGEST_POLL)
            now = datetime.now(UTC)
            reason = due(observation, last, now=now, watch=self.watch, every=self._every)
            if reason in (Reason.AGAIN, Reason.KEEP_FRESH) and await self._somebody_is_at_it(poller, observation, now):
                reason = None
        except (TidemarkError, AirflowException, OSError) as error:
            self.say(str(error))
            return None
        self.say(None)
        if reason is None:
            return None
        return Announced.of(observation, at=now, watch=self.watch), dict(payload_of(observation, reason, now=now))

    async def _somebody_is_at_it(self, poller: SourcePoller, observation: Observation, now: datetime) -> bool:
        until = await answer_within(poller.held_until(observation.stream.uid), LONGEST_POLL)
        return until is not None and until > now

    @property
    def _every(self) -> Intervals:
        return Intervals(timedelta(seconds=self.renew_after), timedelta(seconds=self.keep_fresh_after))
