"""Kept queries that read each other: the order of their refreshes, and the ones that are due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning.states import ViewState, lag_of, state_of

__all__ = ["RUNS_EVERY", "Node", "ancestors", "blocked", "due", "levels", "reads_itself", "roots", "still_fresh"]

RUNS_EVERY = timedelta(minutes=1)  # the time between runs that refresh what is due, as in the DAG `refresh_views`
_NOTED_EVERY = timedelta(minutes=2)  # each is a write to the store


@dataclass(frozen=True)
class Node:
    """A view with the paths of its bases. `expected`: how long its refresh takes, as its last ones did. `changed`:
    whether a base has a newer version than the view has read.
    """

    view: KeptView
    bases: tuple[str, ...]
    expected: timedelta = timedelta()
    changed: bool = True


def due(
    nodes: Sequence[Node], now: datetime, *, if_changed: bool = False, runs_every: timedelta = RUNS_EVERY
) -> tuple[Node, ...]:
    """The views to refresh now, with all dynamic tables that they read, so that all show one point in time.

    A dynamic table is due if a refresh of the next run would end past its target lag. One of DOWNSTREAM waits for its
    readers. A materialized view is due if a base has changed, or one of a table that waits for it. A view for which a
    person has asked is due. A suspended view is not, and neither are its readers. `if_changed`: a dynamic table with a
    lag of its own is also due if a base has changed, or will by this. `runs_every`: the time to the next run.
    """
    stopped = blocked(nodes)
    moved = _moved(nodes, _upstream(nodes)) if if_changed else frozenset()
    behind = _behind(nodes)
    at_next = now + runs_every
    wanted = [node for node in nodes if node.view.uid not in stopped and _is_due(node, at_next, moved, behind)]
    return ancestors(nodes, wanted)


def still_fresh(nodes: Sequence[Node], now: datetime) -> tuple[Node, ...]:
    """The materialized views that show this moment, too, since no base has changed. None whose stored point is young,
    or that fails, is suspended, or is to be refreshed.
    """
    behind = _behind(nodes)
    return tuple(
        node
        for node in nodes
        if node.view.kind is KeptKind.MATERIALIZED_VIEW
        and state_of(node.view) is ViewState.ACTIVE
        and node.view.asked_at is None
        and node.view.uid not in behind
        and (lag_of(node.view, now) or timedelta()) >= _NOTED_EVERY
    )


def ancestors(nodes: Sequence[Node], wanted: Iterable[Node]) -> tuple[Node, ...]:
    """The wanted views, and all dynamic tables that wanted ones read, directly or through others; in the order of
    `nodes`. A materialized view reads dynamic tables as they are, but for those of DOWNSTREAM.
    """
    above = _pulled(nodes)
    found = {node.view.uid for node in wanted}
    queue = list(found)
    while queue:
        for uid in above[queue.pop()] - found:
            found.add(uid)
            queue.append(uid)
    return tuple(node for node in nodes if node.view.uid in found)


def blocked(nodes: Sequence[Node]) -> frozenset[str]:
    """The uids of views that are suspended, and of dynamic tables that read one that is."""
    found = {node.view.uid for node in nodes if node.view.suspended is not None}
    above = _tables_above(nodes)
    while more := {uid for uid, upstream in above.items() if upstream & found} - found:
        found |= more
    return frozenset(found)


def levels(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The views by level: none of a level reads another one of it, or of a later level."""
    above, left = _upstream(nodes), list(nodes)
    found: list[tuple[Node, ...]] = []
    while left:
        waiting = {node.view.uid for node in left}
        ready = tuple(node for node in left if not above[node.view.uid] & waiting)
        if not ready:
            raise AssertionError(f"views read each other in a circle: {[node.view.name for node in left]}")
        found.append(ready)
        left = [node for node in left if node not in ready]
    return tuple(found)


def roots(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The paths of the tables at which these views begin, each once: those that none of them keeps."""
    kept = {node.view.kept.path for node in nodes}
    return tuple(dict.fromkeys(path for node in nodes for path in node.bases if path not in kept))


def reads_itself(nodes: Sequence[Node], view: str, bases: Iterable[str]) -> bool:
    """Whether the view of that uid, with new `bases`, would read a table that is made from it."""
    above = _upstream(nodes)
    own = {node.view.kept.path: node.view.uid for node in nodes}
    queue = [own[path] for path in bases if path in own]
    reached = set(queue)
    while queue:
        new = above[queue.pop()] - reached
        reached |= new
        queue += new
    return view in reached


def _pulled(nodes: Sequence[Node]) -> Mapping[str, frozenset[str]]:
    """Uid of each view → uids of the dynamic tables that are refreshed with it. Those of DOWNSTREAM wait for readers of
    either kind. A suspended table waits for nobody, and a materialized view reads it as it is.
    """
    stopped, tables = blocked(nodes), _tables_above(nodes)
    waiting = {node.view.uid for node in nodes if not _has_lag(node)} - stopped
    return {uid: tables[uid] or found & waiting for uid, found in _upstream(nodes).items()}


def _tables_above(nodes: Sequence[Node]) -> Mapping[str, frozenset[str]]:
    """Uid of each view → uids of the dynamic tables that a dynamic table reads; none for a materialized view."""
    tables = {node.view.uid for node in nodes if node.view.kind is KeptKind.DYNAMIC_TABLE}
    return {uid: found if uid in tables else frozenset() for uid, found in _upstream(nodes).items()}


def _upstream(nodes: Sequence[Node]) -> Mapping[str, frozenset[str]]:
    """Uid of each view → uids of the dynamic tables that it reads. Materialized views are read as their query."""
    keeps = {node.view.kept.path: node.view.uid for node in nodes if node.view.kind is KeptKind.DYNAMIC_TABLE}
    return {node.view.uid: frozenset(keeps[path] for path in node.bases if path in keeps) for node in nodes}


def _moved(nodes: Sequence[Node], above: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The uids of those of the views that have a changed base, and of their readers by `above`."""
    found = {node.view.uid for node in nodes if node.changed}
    while more := {uid for uid, upstream in above.items() if upstream & found} - found:
        found |= more
    return frozenset(found)


def _behind(nodes: Sequence[Node]) -> frozenset[str]:
    """The uids of views without a lag that have a changed base, or one of a table that waits for them."""
    own, above = [node for node in nodes if not _has_lag(node)], _pulled(nodes)
    return _moved(own, {node.view.uid: above[node.view.uid] for node in own})


def _has_lag(node: Node) -> bool:
    """Whether it is a dynamic table with a target lag of its own."""
    return node.view.target_lag is not None and node.view.target_lag.at_most is not None


def _is_due(node: Node, at_next: datetime, moved: frozenset[str], behind: frozenset[str]) -> bool:
    if node.view.asked_at is not None:
        return True
    if node.view.kind is KeptKind.MATERIALIZED_VIEW:
        return node.view.uid in behind
    at_most = None if node.view.target_lag is None else node.view.target_lag.at_most
    if at_most is None:
        return False
    if node.view.uid in moved:
        return True
    lag = lag_of(node.view, at_next)
    return lag is None or lag + node.expected > at_most
