"""Changes of a pipe by hand: pause it, resume it, drop it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import TidemarkOperator, flag_of, key_of, one_of
from tidemark.operators._constants import check_constants, is_constant
from tidemark.operators._pipes import pipe_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.pipes.model.pipes import Pipe

__all__ = ["AlterPipeOperator"]

_ACTIONS = ("pause", "resume", "drop")


class AlterPipeOperator(TidemarkOperator):
    """Pauses, resumes or drops a pipe. No JVM starts.

    Runs of a paused pipe load nothing, and its queue may grow. A dropped pipe leaves its queue, its history and the
    rows that it loaded. A second run changes nothing. A run of the pipe that has begun ends first. Returns {pipe,
    action, existed, paused_since}; the last is the start of the pause as text, and None if the pipe runs. Raises
    PipeNotFound, PipeStale, InvalidArgument.

    :param pipe: name of the pipe. (templated)
    :param action: `pause`, `resume` or `drop`. (templated)
    :param force: resume even after a pause longer than the pipe's history; older files are left out. (templated)
    :param if_exists: accept a missing pipe in a drop; False: PipeNotFound. (templated)
    """

    template_fields: Sequence[str] = ("pipe", "action", "force", "if_exists", "conn_id")

    def __init__(
        self,
        *,
        pipe: str,
        action: str,
        force: bool | str = False,
        if_exists: bool | str = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipe = pipe
        self.action = action
        self.force = force
        self.if_exists = if_exists
        check_constants(self, pipe=pipe_of, action=partial(one_of, _ACTIONS), force=flag_of, if_exists=flag_of)
        if is_constant([action, force]):
            _require_use(action, force)

    def execute(self, context: Context) -> dict[str, Any]:
        """The act, and the pipe's pause after it."""
        from tidemark.pipes.worker.definitions import drop_pipe, pause_pipe, resume_pipe

        name, action = pipe_of("pipe", self.pipe), one_of(_ACTIONS, "action", self.action)
        force, store, by = _require_use(action, self.force), self.hook.open_store(), str(key_of(context))
        pipe: Pipe | None
        if action == "pause":
            pipe = pause_pipe(store, name, by=by)
        elif action == "resume":
            pipe = resume_pipe(store, name, force=force, by=by)
        else:
            pipe = drop_pipe(store, name, if_exists=flag_of("if_exists", self.if_exists), by=by)
        self.log.info("Pipe %s: %s.", name, "does not exist" if pipe is None else f"{action} done")
        since = pipe.paused_at if pipe is not None and action == "pause" else None
        paused = None if since is None else since.isoformat()
        return {"pipe": name, "action": action, "existed": pipe is not None, "paused_since": paused}


def _require_use(action: str, force: bool | str) -> bool:
    """Whether a resume is forced. Raises InvalidArgument if another act is."""
    forced = flag_of("force", force)
    if forced and action != "resume":
        raise InvalidArgument(argument="force", value=force, problem="it is of a resume alone")
    return forced
