"""Watching a channel of notifications from an asset: DAGs that start when files are announced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import TriggerEvent

from tidemark.errors import TidemarkError
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.streams.worker.threads import OwnThreads
from tidemark.triggers._waiting import LONGEST_POLL, answer_within, pause_until_next, seconds_of
from tidemark.triggers._watching import Watcher

if TYPE_CHECKING:
    from tidemark.pipes.model.notifications import NotificationChannel

__all__ = ["POLL_INTERVAL", "RENEW_AFTER", "NotificationsEventTrigger"]

POLL_INTERVAL = 30.0
RENEW_AFTER = 600.0
_AWS_CONN_ID = "aws_default"


class NotificationsEventTrigger(Watcher):
    """For an AssetWatcher: an event when notifications wait in a channel; `tidemark.assets.pipe_notifications_asset`
    makes asset and watcher.

    It counts them and takes none. A document that it took would be hidden from the run that it wakes, and come
    nearer to the dead letters. A number that changed is announced at once, and the same one every `renew_after`
    seconds. A restart of the triggerer announces what waits once more.

    Only the removal of the watcher ends it. A problem of channel or connection is written to the triggerer's log, once
    for each message, and the trigger tries again.

    :param channel: URL or ARN of a queue of SQS, which needs the right sqs:GetQueueAttributes; or path or URI of a
        directory. Not a template.
    :param aws_conn_id: connection of a queue.
    :param conn_id: Tidemark's connection, whose storage options a directory needs.
    :param poll_interval: seconds between looks.
    """

    def __init__(
        self,
        *,
        channel: str,
        aws_conn_id: str = _AWS_CONN_ID,
        conn_id: str = DEFAULT_CONN_ID,
        poll_interval: float = POLL_INTERVAL,
        renew_after: float = RENEW_AFTER,
    ) -> None:
        super().__init__()
        self.channel = channel
        self.aws_conn_id = aws_conn_id
        self.conn_id = conn_id
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.renew_after = seconds_of("renew_after", renew_after)
        self._opened: NotificationChannel | None = None
        self._looks: OwnThreads | None = None  # made when it runs: a DAG with this watcher can be copied
        self._last: Future[int] | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Plain values, the same ones for the same watcher: Airflow tells watchers apart by them."""
        return (
            "tidemark.triggers.notifications.NotificationsEventTrigger",
            {
                "channel": self.channel,
                "aws_conn_id": self.aws_conn_id,
                "conn_id": self.conn_id,
                "poll_interval": self.poll_interval,
                "renew_after": self.renew_after,
            },
        )

    @property
    def subject(self) -> str:
        """The channel."""
        return f"Notifications of {self.channel}"

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Events for as long as the watcher exists."""
        announced, at = 0, 0.0
        while True:
            waiting = await self._count()
            is_old = time.monotonic() - at >= self.renew_after
            if waiting and (waiting != announced or is_old):
                at = time.monotonic()
                yield TriggerEvent({"channel": self.channel, "waiting": waiting})  # type: ignore[no-untyped-call]
            announced = announced if waiting is None else waiting
            await asyncio.sleep(pause_until_next(self.poll_interval, self.channel))

    async def _count(self) -> int | None:
        """The notifications that wait; None if it is unknown. A look that hangs keeps its thread, and is waited for."""
        self._looks = self._looks or OwnThreads("tidemark-trigger-notifications", most=1)
        if self._last is None:
            self._last = self._looks.submit(self._look)
        try:
            found = await answer_within(self._last, LONGEST_POLL)
        except (TidemarkError, AirflowException, OSError) as error:
            if self._last.done():
                self._last, self._opened = None, None
            self.say(str(error) or "it does not answer")
            return None
        self._last = None
        self.say(None)
        return found

    def _look(self) -> int:
        from tidemark.hooks.notifications import channel_at, is_sqs

        if self._opened is None:
            options = None if is_sqs(self.channel) else TidemarkHook(self.conn_id).settings.storage_options
            self._opened = channel_at(self.channel, options, self.aws_conn_id)
        return self._opened.waiting()
