"""An apply of one object, as a task of its own has it."""

from __future__ import annotations

from tidemark.replication.model.replication import Actor
from tidemark.replication.worker.apply import ApplyOutcome, apply_objects
from tidemark.streams.worker.runtime import Runtime

__all__ = ["run_apply"]


def run_apply(runtime: Runtime, object_uid: str, *, by: Actor) -> ApplyOutcome:
    """Raises the object's error, too."""
    outcome = apply_objects(runtime, (object_uid,), by=by)[object_uid]
    if outcome.error is not None:
        raise outcome.error
    return outcome
