"""Which events of an event log somebody needs yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidemark.replication.model.replication import START, LogPosition, ObjectState, ReplicatedObject

__all__ = ["needed_from"]


def needed_from(objects: Iterable[tuple[ReplicatedObject, bool]]) -> Mapping[str, LogPosition]:
    """From which position on the events of each object are needed, by its `source_id`: from where its target is, and
    all of them while a copy of it is under way (the second of the pair), which may be of any position.

    An object that is not named here needs none that are captured already: its first copy will be as of a later
    position. One that nothing can be applied to now keeps its events, as it may be mended.
    """
    needed: dict[str, LogPosition] = {}
    for one, copied in objects:
        if copied or one.state is ObjectState.ACTIVE:
            needed[one.source_id] = START
        elif one.applied is not None:
            needed[one.source_id] = one.applied
    return needed
