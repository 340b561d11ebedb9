"""The decision whether to recluster a table, and how much of it.

Delta keeps the result of each clustering run as a *cube*. Files as they arrived are in none. An incremental OPTIMIZE
turns these files and all cubes below a size into one cube. A table with a single cube has the least depth, but each
run would rewrite all of it. So a decision is about the size below which cubes are rewritten.

The rule is that of a binomial list. A cube has a *phase*: how often its rows have been rewritten, if each was rewritten
as rarely as the depth allows. A list of q cubes holds C(q + r, q) units of new data if none is rewritten more than r
times. So the size of a cube, in units, and its place say its phase. Of all choices that keep the depth, the rule takes
one whose result has the lowest phase, and among these the largest. Over many appends it mostly writes a few per cent
more than the least that is possible. The benchmark `clustering_amplification` computes both.

A full rewrite may end above the goal, as with texts whose first 32 characters are the same. Its depth is then the
*floor* of what another one can promise. The table is kept as far above the floor as the goal is above the least depth.

A file without statistics of the key is read by each query, as if it lay over all others. So each such file that no run
has rewritten makes the table deeper by one. Results have statistics, unless a setting of the session leaves them out.
Files of results do not count here, so no run follows another one for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import comb

from tidemark.clustering.model.tables import Goal, How, Layer, Plan, Seen

__all__ = ["allowed_bytes", "bounded", "plan_upkeep", "smoothed_layer", "within_goal"]

_NEWEST_COUNTS = 0.25  # share of the newest measure in the average size of a layer
_SAME_SIZE = 0.9  # files of the same rows differ by so much
_PHASES = 64  # more than any table reaches
_LEAST = 1.0  # depth of files that do not overlap


@dataclass(frozen=True)
class _Choice:
    """Rewrite the files as they arrived, and the `cubes` smallest cubes."""

    cubes: int
    bytes: int
    depth: float
    phase: int
    full: bool = False


DepthAfter = Callable[[Collection[str | None]], float]


def plan_upkeep(
    layers: Sequence[Layer], seen: Seen, goal: Goal, depth_after: DepthAfter, *, allowed: int | None = None
) -> Plan:
    """The work that pays now. `allowed`: the bytes that may be rewritten, None for any amount. `depth_after`: the
    average depth that is expected if the files of these layers become one result.

    Nothing, as long as the average depth is within the goal. Results by another key are rewritten only with all others.
    If no choice within the budget keeps the goal, the one that comes nearest is taken. A floor raises a goal below it.
    """
    within = within_goal(seen, goal)
    if within is not None:
        return Plan(How.NOTHING, within)
    choices = _choices(layers, seen, goal, depth_after)
    if not choices:
        return Plan(How.NOTHING, f"{_measured(seen)} cannot get lower: all files are one result of clustering")
    affordable = [one for one in choices if allowed is None or one.bytes <= allowed]
    if not affordable:
        least = min(one.bytes for one in choices)
        return Plan(How.NOTHING, f"{_measured(seen)} needs {least} bytes, and the budget has {allowed}")
    most = _kept_depth(seen, goal)
    keeping = [one for one in affordable if one.depth <= most]
    if keeping:
        chosen = min(keeping, key=lambda one: (one.phase, -one.bytes))
    else:
        chosen = min(affordable, key=lambda one: (one.depth, one.bytes))
    return _plan(chosen, layers, seen, goal)


def within_goal(seen: Seen, goal: Goal) -> str | None:
    """The reason in words if nothing has to be rewritten at this depth; None if something has."""
    if seen.depth + (seen.without or 0) > _kept_depth(seen, goal):
        return None
    return f"{_measured(seen)} is within {_in_words(seen, goal)}"


def allowed_bytes(goal: Goal, spent: int, most: int | None = None) -> int | None:
    """The bytes that a run may rewrite after `spent` bytes within a day, None for any amount. `most`: of this run."""
    bounds = [bound for bound in (goal.run_bytes, most) if bound is not None]
    if goal.day_bytes is not None:
        bounds.append(max(0, goal.day_bytes - spent))
    return min(bounds, default=None)


def bounded(seen: Seen, *, version: int, files: int, bytes: int, depth: int) -> Seen:
    """The most that the depths can be after new files came. `depth`: of the deepest among the new files alone.

    An earlier file can be below all new files of one point, and a new file below the deepest earlier point.
    """
    if not files:
        return replace(seen, version=version)
    earlier, new = seen.files * (seen.depth + depth), files * (seen.largest + depth)
    average = round((earlier + new) / (seen.files + files), 4)
    return replace(
        seen,
        version=version,
        depth=average,
        largest=seen.largest + depth,
        files=seen.files + files,
        bytes=seen.bytes + bytes,
        exact=False,
    )


def smoothed_layer(known: float | None, layers: Sequence[Layer]) -> float | None:
    """The bytes of new data that deepen the table by one: those of the files as they arrived, averaged with before."""
    new = next((one for one in layers if one.cube is None and one.bytes > one.without_bytes), None)
    if new is None:
        return known
    measured = (new.bytes - new.without_bytes) / max(1.0, new.depth)
    return measured if known is None else known + _NEWEST_COUNTS * (measured - known)


def _kept_depth(seen: Seen, goal: Goal) -> float:
    """The average depth that is kept: the goal, or as much above the floor if that is above the goal."""
    return goal.depth if seen.floor is None or seen.floor <= goal.depth else seen.floor + goal.depth - _LEAST


def _measured(seen: Seen) -> str:
    """The depth in words, with the files that deepen the table without statistics."""
    depth = f"{'depth' if seen.exact else 'depth of at most'} {seen.depth:g}"
    files = {0: "", 1: " with 1 file without statistics"}
    return depth + files.get(seen.without or 0, f" with {seen.without} files without statistics")


def _in_words(seen: Seen, goal: Goal) -> str:
    most = _kept_depth(seen, goal)
    if most == goal.depth:
        return f"{goal.depth:g}"
    return f"{most:g} (the goal is {goal.depth:g}, and the last full rewrite left {seen.floor:g})"


def _choices(layers: Sequence[Layer], seen: Seen, goal: Goal, depth_after: DepthAfter) -> list[_Choice]:
    new = [one for one in layers if one.cube is None]
    cubes = sorted((one for one in layers if one.cube is not None and one.keeps), key=lambda one: one.bytes)
    others = [one for one in layers if not one.keeps]
    arrived = sum(one.bytes for one in new)
    unit = smoothed_layer(seen.layer_bytes, layers) or max(1.0, float(cubes[0].bytes if cubes else 1))
    slots = max(1, int(goal.depth))
    least = max(_LEAST, seen.floor or 0.0)
    found = []
    for count in range(len(cubes) + 1):
        if not new and count < 2:
            continue  # one cube alone stays as it is
        if 0 < count < len(cubes) and cubes[count].bytes == cubes[count - 1].bytes:
            continue  # sizes choose, so cubes of one size go together
        taken = cubes[:count]
        phases = [_phase(one.bytes / unit, slots - (len(cubes) - 1 - place)) for place, one in enumerate(taken)]
        depth = depth_after([None, *(one.cube for one in taken)])
        if count == len(cubes) and not others:
            depth = max(depth, least)
        found.append(_Choice(count, arrived + sum(one.bytes for one in taken), depth, max(phases, default=0) + 1))
    if others:
        everything = sum(one.bytes for one in layers)
        found.append(_Choice(len(cubes), everything, least, _PHASES, full=True))
    return found


def _phase(units: float, places: int) -> int:
    """How often the rows of a cube of this many units were rewritten, if `places` cubes are at and above its place."""
    places = max(1, places)
    return next((phase for phase in range(_PHASES) if comb(places + phase, places) >= _SAME_SIZE * units), _PHASES)


def _plan(chosen: _Choice, layers: Sequence[Layer], seen: Seen, goal: Goal) -> Plan:
    cubes = sorted(one.bytes for one in layers if one.cube is not None and one.keeps)
    smaller_than = cubes[chosen.cubes - 1] + 1 if chosen.cubes else 0
    whole = chosen.full or (chosen.cubes == len(cubes) and all(one.keeps for one in layers))
    total = len(cubes)
    if chosen.full:
        what = "all files, since some were clustered by another key"
    elif whole:
        what = "all files"
    else:
        what = f"the new files and {chosen.cubes} of {total} earlier results"
    why = f"{_measured(seen)} is above {_in_words(seen, goal)}: rewrite {what}"
    return Plan(How.FULL if whole else How.CUBES, why, chosen.bytes, smaller_than, chosen.depth)
