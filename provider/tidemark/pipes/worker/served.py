"""The file of pipes that the ingest service reads. It follows the control store while the service runs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.model.codec import to_json
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.served import ServedPipe, ServedPipes
from tidemark.pipes.planning.states import stalled_by
from tidemark.pipes.worker.definitions import list_pipes
from tidemark.pipes.worker.needs import copy_of
from tidemark.pipes.worker.resolve import place_of

__all__ = ["kept_pipes", "served_pipes", "write_pipes"]

_SECONDS_BETWEEN_LOOKS = 10.0
_SECONDS_TO_END = 5.0
_log = logging.getLogger(__name__)


def served_pipes(store: ControlStore) -> ServedPipes:
    """The pipes of the store, with their places as names resolve now."""
    return ServedPipes(tuple(_served(store, pipe) for pipe in list_pipes(store)))


def write_pipes(file: Path, pipes: ServedPipes) -> bool:
    """Write the file whole, for the owner's eyes only. False if it was so already. Raises OSError."""
    text = to_json(pipes)
    try:
        if file.read_text(encoding="utf-8") == text:
            return False
    except (OSError, ValueError):
        pass  # it is written anew
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f"{file.name}.{os.getpid()}.half")
    with open(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as target:
        target.write(text)
    half.replace(file)
    return True


@contextmanager
def kept_pipes(store: ControlStore, file: Path, *, seconds: float = _SECONDS_BETWEEN_LOOKS) -> Iterator[None]:
    """Write the file, and again in a thread of its own when pipes, stages or their places change.

    A round that fails is logged, and the file is unchanged: rows of channels need no control store.
    """
    _round(store, file)
    ended = threading.Event()

    def rounds() -> None:
        while not ended.wait(seconds):
            _round(store, file)

    thread = threading.Thread(target=rounds, name="pipes of the ingest service", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_SECONDS_TO_END)


def _round(store: ControlStore, file: Path) -> None:
    try:
        write_pipes(file, served_pipes(store))
    except (TidemarkError, OSError) as error:
        _log.warning("The ingest service's file of pipes stays as it is: %s", error)


def _served(store: ControlStore, pipe: Pipe) -> ServedPipe:
    try:
        copy = copy_of(pipe)
        place = place_of(copy.source, store)
    except TidemarkError as error:
        state = stalled_by(error)
        if state is None:
            raise
        return ServedPipe(pipe.name, pipe.uid, pipe.queue, state=state.value, problem=store.hide(str(error)))
    return ServedPipe(pipe.name, pipe.uid, pipe.queue, place.location, place.prefix + copy.prefix, copy.pattern)
