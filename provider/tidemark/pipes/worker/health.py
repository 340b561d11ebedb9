"""Pipes that need a look: stalled, with files that were skipped, or paused for too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning.states import STALE_AFTER, is_stale, kept_state
from tidemark.pipes.store import pipes

__all__ = ["TroubledPipe", "troubled_pipes"]


@dataclass(frozen=True)
class TroubledPipe:
    """A pipe that needs a look. `state`: by its row. `stale`: paused for longer than its history. `since`: of the pause
    or of the problem.
    """

    pipe: str
    state: str
    stale: bool
    problem: str
    since: datetime | None

    def __str__(self) -> str:
        since = "" if self.since is None else f" since {self.since:%Y-%m-%d %H:%M} UTC"
        return f"Pipe {self.pipe} is {self.state}{since}: {self.problem}"


def troubled_pipes(store: ControlStore, names: Sequence[str] = ()) -> tuple[TroubledPipe, ...]:
    """Those of the pipes that need a look, of all pipes by default: stalled ones first. Raises PipeNotFound."""

    def look(connection: sa.Connection) -> tuple[Pipe, ...]:
        return tuple(pipes.find_pipe(connection, name) for name in names) or pipes.live_pipes(connection)

    now = store.clock()
    found = [one for one in (_trouble(pipe, now) for pipe in store.read(look)) if one is not None]
    return tuple(sorted(found, key=lambda one: (one.stale, one.state == "RUNNING")))


def _trouble(pipe: Pipe, now: datetime) -> TroubledPipe | None:
    state = kept_state(pipe).value
    if is_stale(pipe, now):
        problem = f"the pause is longer than {STALE_AFTER.days} days, after which loaded files are forgotten."
        return TroubledPipe(pipe.name, state, True, problem, pipe.paused_at)
    if pipe.paused_at is None and pipe.problem is not None:
        return TroubledPipe(pipe.name, state, False, pipe.problem, pipe.problem_at)
    return None
