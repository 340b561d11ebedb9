"""How a deferred task waits in the triggerer: polls at an interval, until something is found or the time is over."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from concurrent.futures import Future
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemark import errors
from tidemark.errors import InvalidArgument, TidemarkError
from tidemark.model.codec import to_plain

if TYPE_CHECKING:
    from tidemark.triggers._poller import SourcePoller

__all__ = ["LONGEST_POLL", "POLLER", "WaitTrigger", "answer_within", "failure_of", "pause_until_next", "seconds_of"]

POLLER = "tidemark.triggers._poller"
"""Imported in a thread when a trigger runs: it loads what DAG files and the triggerer's loop had better not load."""

_PASSING = (*errors.PASSING, OSError)
"""What may be over in a minute; an answer that does not come is a TimeoutError, and so an OSError."""

_LAST_POLL = 3.0  # seconds that a poll may take which begins when the time is nearly over
LONGEST_POLL = 60.0  # seconds after which the log says that nothing answers
_SPREAD = 0.1  # of the interval, two seconds at most: streams are asked in a body, but not all in one instant

T = TypeVar("T")


class WaitTrigger(BaseTrigger):
    """Polls every `poll_interval` seconds until `end`, and fires once.

    Its event is {status: "found", value}, {status: "timeout", problem} or {status: "failed", message, error}. `end` is
    a time of the wall clock, so another triggerer that continues keeps it. The trigger polls once more after it, since
    data may have come. Until then it waits for a storage or store that does not answer, with a warning in the log. Any
    other error of Tidemark fails at once, or with `keep_on` is logged in the same way.

    :param end: ISO 8601 with a zone, or an aware datetime.
    :param longest_interval: the interval doubles with each poll up to this; None: it stays.
    """

    def __init__(
        self,
        *,
        conn_id: str,
        end: datetime | str,
        poll_interval: float = 60.0,
        longest_interval: float | None = None,
        keep_on: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.end = _aware("end", end)
        self.poll_interval = seconds_of("poll_interval", poll_interval)
        self.longest_interval = None if longest_interval is None else float(longest_interval)
        self.keep_on = keep_on

    @abstractmethod
    def request(self, poller: SourcePoller) -> Future[Any]:
        """The answer of one poll; shared with others, so nothing cancels it."""

    @abstractmethod
    def value_of(self, answer: Any) -> Any:
        """The value for the task, in plain values; None to wait on."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """The subject of the wait, as the log calls it."""

    def waiting(self) -> dict[str, Any]:
        """The part of `serialize` that every such trigger has."""
        return {
            "conn_id": self.conn_id,
            "end": self.end.isoformat(),
            "poll_interval": self.poll_interval,
            "longest_interval": self.longest_interval,
            "keep_on": self.keep_on,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event. A cancel leaves no thread and no connection behind."""
        module = await asyncio.to_thread(import_module, POLLER)
        with module.shared_poller(self.conn_id) as poller:
            payload = await self._wait(poller)
        yield TriggerEvent(payload)  # type: ignore[no-untyped-call]

    async def _wait(self, poller: SourcePoller) -> dict[str, Any]:
        interval = self.poll_interval
        while True:
            event, problem = await self._poll(poller)
            if event is not None:
                return event
            if self._left() <= 0:
                return {"status": "timeout", "problem": None if problem is None else str(problem)}
            pause = min(self._left(), self._pause(interval))
            if problem is not None:
                self.log.warning("%s cannot be asked now, next poll in %.1f s: %s", self.subject, pause, problem)
            await asyncio.sleep(pause)
            if self.longest_interval is not None:
                interval = min(self.longest_interval, 2 * interval)

    async def _poll(self, poller: SourcePoller) -> tuple[dict[str, Any] | None, Exception | None]:
        """The event, if the wait is over; what was in the way, if that may pass."""
        try:
            value = self.value_of(await answer_within(self.request(poller), self._patience()))
        except _PASSING as error:
            return None, error
        except (TidemarkError, AirflowException) as error:
            return (None, error) if self.keep_on else (failure_of(error), None)
        return (None if value is None else {"status": "found", "value": value}), None

    def _left(self) -> float:
        return (self.end - datetime.now(UTC)).total_seconds()

    def _patience(self) -> float:
        return min(LONGEST_POLL, max(_LAST_POLL, self._left()))

    def _pause(self, interval: float) -> float:
        return interval if self.longest_interval is not None else pause_until_next(interval, self.subject)


def failure_of(error: Exception) -> dict[str, Any]:
    """The event that hands an error to the task: its message, and the record of one of ours."""
    record = to_plain(error.to_record()) if isinstance(error, TidemarkError) else None
    return {"status": "failed", "message": str(error), "error": record}


async def answer_within(answer: Future[T], seconds: float) -> T:
    """The answer, without cancelling it for others who wait for the same. Raises TimeoutError where it does not come.

    Nothing but the waiting happens on the event loop.
    """
    try:
        async with asyncio.timeout(seconds):  # wait_for of Python 3.11 may swallow a cancellation
            return await asyncio.shield(asyncio.wrap_future(answer))
    except TimeoutError as error:
        if answer.done():
            raise
        raise TimeoutError(f"no answer for {seconds:.0f} s; store or lake hang") from error


def pause_until_next(interval: float, who: str) -> float:
    """Seconds until the next multiple of `interval` on the clock, the same for all, plus a little of one's own.

    So polls of many streams fall together, and one query of the store serves them.
    """
    own = crc32(who.encode()) / 2**32 * min(2.0, _SPREAD * interval)
    pause = interval - (time.time() - own) % interval
    return pause if pause > 0 else interval


def seconds_of(argument: str, value: float) -> float:
    """A time in seconds, as a float. Raises InvalidArgument for none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidArgument(argument=argument, value=value, problem="it must be a number of seconds above 0")
    return seconds


def _aware(argument: str, value: datetime | str) -> datetime:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        if time.tzinfo is None:
            raise ValueError
    except (ValueError, TypeError) as error:
        problem = "it must be a time with a zone, as 2026-01-31T12:00:00+00:00"
        raise InvalidArgument(argument=argument, value=value, problem=problem) from error
    return time.astimezone(UTC)
