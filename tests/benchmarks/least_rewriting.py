"""The least that upkeep of a clustering can rewrite, by trying every way.

    python -m tests.benchmarks.least_rewriting [appends] [depth]

Appends of one size span the range of the key, so each adds one to the depth everywhere. After each append the depth
must be within the goal. Upkeep may merge any results into one, and writes all of their bytes. The own write of an
append counts. Since each part of the key's range is alike, merging only parts of it cannot be cheaper.
"""

from __future__ import annotations

import sys
from itertools import combinations

__all__ = ["least_rewriting"]

Sizes = tuple[int, ...]


def least_rewriting(appends: int, depth: int) -> int:
    """The least number of append sizes that are written in total. Dynamic programming over all sets of sizes."""
    costs: dict[Sizes, int] = {(): 0}
    for _ in range(appends):
        following: dict[Sizes, int] = {}
        for sizes, cost in costs.items():
            for result, merged in _results(tuple(sorted((*sizes, 1))), depth):
                total = cost + merged
                if total < following.get(result, total + 1):
                    following[result] = total
        costs = following
    return appends + min(costs.values())


def _results(sizes: Sizes, depth: int) -> set[tuple[Sizes, int]]:
    """Each set of sizes that one merge can leave, with the bytes that it writes."""
    found = {(sizes, 0)} if len(sizes) <= depth else set()
    for count in range(2, len(sizes) + 1):
        if len(sizes) - count + 1 > depth:
            continue
        for chosen in set(combinations(range(len(sizes)), count)):
            merged = sum(sizes[place] for place in chosen)
            kept = [size for place, size in enumerate(sizes) if place not in chosen]
            found.add((tuple(sorted((*kept, merged))), merged))
    return found


if __name__ == "__main__":
    said = [int(one) for one in sys.argv[1:]]
    wanted, goal = said[0] if said else 50, said[1] if len(said) > 1 else 4
    least = least_rewriting(wanted, goal)
    print(f"{wanted} appends, depth {goal}: at least {least} append sizes are written, {least / wanted:.2f} per append")
