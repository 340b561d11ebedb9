"""Names of persons and reasons of acts and moves, which are for those who may read the DAGs that own the object."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidemark.plugins.monitor.actors import Actor

__all__ = ["OF_OTHERS", "actor_for_reader", "is_of_others"]

OF_OTHERS = "only readers of the object's DAG see the name and the reason"


def is_of_others(owners: Iterable[str | None], readable: Collection[str]) -> bool:
    """Whether one of these DAGs may not be read. An object without an owner (None) is everybody's."""
    return any(owner is not None and owner not in readable for owner in owners)


def actor_for_reader(who: Actor, *, hidden: bool) -> Actor:
    """The actor without the name of a person, if that is hidden. The name of a run goes by its own DAG."""
    return Actor("hidden") if hidden and who.kind == "person" else who
