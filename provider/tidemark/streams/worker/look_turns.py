"""Looks in turn: the object whose last turn is longest ago is first, and the control store keeps the turns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import TypeVar

import sqlalchemy as sa

from tidemark.control.looks import looked_kinds, note_looks, note_turns
from tidemark.control.object_needs import Key
from tidemark.control.objects import portions
from tidemark.control.store import ControlStore
from tidemark.errors import StoreBusy, StoreError
from tidemark.streams.store.heads import keep_heads, new_heads
from tidemark.streams.worker.object_needs import Known, look_at
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus

__all__ = ["look_in_turn", "next_turns"]

T = TypeVar("T")

log = logging.getLogger(__name__)

KEEP_AGAIN = timedelta(minutes=10)
"""A store that has refused to keep looks, as a standby does, is not asked to for that time."""

_REFUSED: dict[str, datetime] = {}  # when each store refused last, by its URL: what this process has told


def next_turns(
    turns: Mapping[Key, datetime], asked: Mapping[Key, float], troubled: Collection[Key], most: int
) -> list[Key]:
    """The objects that a process looks at next, at most `most`. `turns`: the last turn of each living object, by the
    store. `asked`: when this process asked it last, which comes first, as no process has the findings of another.

    Each second one is in trouble while there are such, and within both the longest without a turn is first. Objects of
    kinds without logs have no turns in the store, and come after those that this process has not asked either.
    """
    in_logs = set(looked_kinds())
    order = sorted(turns, key=lambda key: (asked.get(key, float("-inf")), key[0] not in in_logs, turns[key], key))
    urgent = [key for key in order if key in troubled][: most // 2]
    chosen = set(urgent)
    others = [key for key in order if key not in chosen][: most - len(urgent)]
    return [key for key in chain.from_iterable(zip_longest(urgent, others)) if key is not None]


def look_in_turn(
    store: ControlStore, tables: Tables, known: Known, keys: Sequence[Key], *, open_looks: OpenLooks, rest: float = 0.0
) -> Known:
    """The findings after a look at these objects. The store has their turns before the look, which may end the process,
    and the answers after it. A store that refuses that costs the order after a restart, and no look. The log has it
    once, and the store is left alone for a while.
    """
    in_logs = set(looked_kinds())
    logs = [key for key in keys if key[0] in in_logs]
    begun = store.clock()
    keeps = _kept(
        store, begun, lambda: _in_steps(store, logs, lambda connection, some: note_turns(connection, some, begun))
    )
    found = look_at(store, tables, known, keys, rest=rest, open_looks=open_looks)
    if keeps and _kept(store, begun, lambda: _keep_answers(store, found, logs, begun)):
        _REFUSED.pop(store.url, None)
    return found


def _keep_answers(store: ControlStore, found: Known, logs: Sequence[Key], at: datetime) -> None:
    looked = [key for key in logs if key in found.looked]
    seen = {uid: found.seen[kind, uid][1] for kind, uid in looked if (kind, uid) in found.seen}
    heads = {uid: status.head for uid, status in seen.items() if isinstance(status, StreamStatus)}
    new = store.read(lambda connection: new_heads(connection, heads, at))
    _in_steps(store, new, lambda connection, some: keep_heads(connection, some))
    _in_steps(store, looked, lambda connection, some: note_looks(connection, some, [], at))
    waiting = [key for key in logs if key in found.waiting]
    _in_steps(store, waiting, lambda connection, some: note_looks(connection, [], some, at))


def _in_steps(store: ControlStore, things: Sequence[T], note: Callable[[sa.Connection, Sequence[T]], None]) -> None:
    """Each step is a short turn of the store's writers."""
    for some in portions(things):
        store.write(lambda connection, some=some: note(connection, some))  # type: ignore[misc]


def _kept(store: ControlStore, at: datetime, keep: Callable[[], None]) -> bool:
    """Whether the store has kept it. A store that has refused shortly before is not asked."""
    refused = _REFUSED.get(store.url)
    if refused is not None and at - refused < KEEP_AGAIN:
        return False
    try:
        keep()
    except StoreBusy as error:  # which the next round may not meet
        log.warning("The control store does not keep when logs were looked at: %s", error)
        return False
    except StoreError as error:
        level = logging.WARNING if refused is None else logging.DEBUG
        log.log(level, "The control store does not keep when logs were looked at: %s", error)
        _REFUSED[store.url] = at
        return False
    return True
