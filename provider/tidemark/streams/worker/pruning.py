"""Old history leaves the control store, a little at a time, so that no consumer waits for long."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from tidemark.control import history
from tidemark.control.store import ControlStore
from tidemark.streams.planning.history import require_long_enough

__all__ = ["CLAIMED_FOR", "prune", "prune_in_passing"]

AT_ONCE = 100  # rows of a kind that one transaction looks at: some milliseconds
CLAIMED_FOR = timedelta(minutes=10)
IN_PASSING = timedelta(seconds=5)  # that one task spends on it


def prune(
    store: ControlStore,
    keep: timedelta,
    *,
    at_once: int = AT_ONCE,
    stop: Callable[[], bool] = lambda: False,
    pause: Callable[[float], None] = time.sleep,
    seconds: Callable[[], float] = time.monotonic,
) -> dict[str, int]:
    """Drop what ended longer than `keep` ago and nothing needs any more; how many things of each kind.

    Each step is a transaction of its own, and after it the store is left alone for as long as it took. So waiting users
    of the store get in between. Kinds take turns, step by step, and the first differs from second to second. So none
    waits for the end of another, however early the run is stopped.

    If it is killed or `stop`ped in the middle, the things that it dropped stay dropped. A second run, also at the same
    time, continues with the rest. Raises InvalidArgument for less than a day, and StoreRefused without the right to
    delete.
    """
    now = store.clock()
    before = _since(now, require_long_enough("keep", keep))
    dropped = dict.fromkeys(history.KINDS, 0)
    left = _from_another(tuple(history.KINDS), now)
    while left and not stop():
        kind, cursor = left.popleft()
        began = seconds()
        step = _step(store, kind, before, cursor, at_once)
        dropped[kind] += step.dropped
        if step.cursor is not None:
            left.append((kind, step.cursor))
            pause(seconds() - began)
    return dropped


def prune_in_passing(
    store: ControlStore, keep: timedelta, *, seconds: Callable[[], float] = time.monotonic
) -> dict[str, int] | None:
    """`prune` for some seconds, if no other task did lately; None if one did. For tasks, after their own work.

    Raises what `prune` raises.
    """
    now = store.clock()
    if not store.read(lambda connection: history.is_due(connection, now=now, every=CLAIMED_FOR)):
        return None
    if not store.write(lambda connection: history.claim(connection, now=now, every=CLAIMED_FOR)):
        return None
    end = seconds() + IN_PASSING.total_seconds()
    return prune(store, keep, stop=lambda: seconds() >= end)


def _from_another(kinds: Sequence[str], now: datetime) -> deque[tuple[str, history.Cursor | None]]:
    """The kinds without a cursor, beginning with one that the time chooses."""
    found: deque[tuple[str, history.Cursor | None]] = deque((kind, None) for kind in kinds)
    found.rotate(-int(now.timestamp()))
    return found


def _step(store: ControlStore, kind: str, before: datetime, after: history.Cursor | None, most: int) -> history.Step:
    return store.write(lambda c: history.drop_step(c, kind, before=before, after=after, most=most))


def _since(now: datetime, keep: timedelta) -> datetime:
    try:
        return now - keep
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
