"""Which events of an event log somebody needs yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidemark.replication.model.replication import START, LogPosition, ObjectState, ReplicatedObject

__all__ = ["needed_from"]


def needed_from(objects: Iterable[tuple[ReplicatedObject, bool]]) -> Mapping[str, LogPosition]:
    """The position from which on an object's events are needed, by its `source_id`: the position of its target. All
    events are needed during a copy of it (the second of the pair), which may be of any position.

    An object that is not named here needs no captured event: its first copy will be as of a later position. An object
    to which nothing can be applied now keeps its events, as it may be fixed.
    """
    needed: dict[str, LogPosition] = {}
    for one, copied in objects:
        if copied or one.state is ObjectState.ACTIVE:
            needed[one.source_id] = START
        elif one.applied is not None:
            needed[one.source_id] = one.applied
    return needed
