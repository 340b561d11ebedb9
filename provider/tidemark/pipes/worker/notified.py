"""Files that a channel of notifications announces to a pipe: fetched for a run, and acknowledged after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from tidemark.errors import NotificationsUnreachable, StorageRefused, StorageUnreachable, TidemarkError
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.notifications import NotificationChannel
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.status import ChannelFacts
from tidemark.pipes.planning.notifications import announced_files

__all__ = ["MOST_DOCUMENTS", "ChannelOf", "NotifiedFiles", "acknowledged_after", "channel_facts", "notified_files"]

MOST_DOCUMENTS = 10_000  # of one run

ChannelOf = Callable[[Pipe], NotificationChannel | None]
"""The channel of a pipe; None if it has none, or if this program cannot read it."""

_UNREACHABLE = (NotificationsUnreachable, StorageRefused, StorageUnreachable)
_MOST_COUNTED = 1_000_000
_MOST_SAID = 20  # documents in the log

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NotifiedFiles:
    """`files`: names behind location and prefix of the pipe's load. `handles`: of the documents that are done with,
    once these files are in the queue. `received`: the number of all documents that were taken.
    """

    files: tuple[str, ...] = ()
    handles: tuple[str, ...] = ()
    received: int = 0


def notified_files(
    pipe: Pipe, load: Load, channel: NotificationChannel, *, most: int = MOST_DOCUMENTS
) -> NotifiedFiles:
    """The files that the waiting documents announce, each once.

    Files elsewhere are left out, and their documents are done with. A document that is not understood is logged, and
    the channel puts it aside. Files that could be read from it count. Raises NotificationsUnreachable,
    StorageUnreachable, StorageRefused.
    """
    files, handles, refused, others = dict[str, None](), list[str](), 0, 0
    documents = channel.receive(most)
    for one in documents:
        found = announced_files(one.text, load.location, load.prefix)
        files.update(dict.fromkeys(found.files))
        others += found.others
        if found.problem is None:
            handles.append(one.handle)
            continue
        refused += 1
        fate = channel.refuse(one.handle)
        if refused <= _MOST_SAID:
            _say_refused(pipe, found.problem, fate)
    said = "Pipe %s: %s notifications, %s files, %s of other places or kinds, %s documents that are not understood."
    log.info(said, pipe.name, len(documents), len(files), others, refused)
    return NotifiedFiles(tuple(files), tuple(handles), len(documents))


def channel_facts(pipe: Pipe, channel_of: ChannelOf) -> ChannelFacts:
    """The number of notifications that wait for a pipe. A channel that cannot be reached has a problem."""
    try:
        channel = channel_of(pipe)
        return ChannelFacts(None if channel is None else channel.waiting(_MOST_COUNTED))
    except TidemarkError as error:
        return ChannelFacts(problem=str(error))


@contextmanager
def acknowledged_after(channel: NotificationChannel, found: NotifiedFiles) -> Iterator[None]:
    """Hold the documents during the block, and acknowledge them after it unless it fails. Then they come again, which
    is harmless: the queue knows their files.
    """
    over = Event()
    holder = Thread(target=_hold, args=(channel, found.handles, over), name="tidemark-notifications", daemon=True)
    if found.handles and channel.hold_seconds is not None:
        holder.start()
    try:
        yield
    finally:
        over.set()
        if holder.ident is not None:
            holder.join()
    try:
        channel.acknowledge(found.handles)
    except _UNREACHABLE as error:
        log.warning("Notifications were not removed, and the next run reads them again: %s", error)


def _hold(channel: NotificationChannel, handles: Sequence[str], over: Event) -> None:
    while not over.wait(channel.hold_seconds):
        try:
            channel.hold(handles)
        except _UNREACHABLE as error:
            log.warning("Notifications were not held, and other runs may read them, too: %s", error)


def _say_refused(pipe: Pipe, problem: str, fate: str | None) -> None:
    if fate is None:
        log.info("Pipe %s: a notification is not complete yet: %s", pipe.name, problem)
    else:
        log.warning("Pipe %s: a notification is not understood: %s. %s", pipe.name, problem, fate[0].upper() + fate[1:])
