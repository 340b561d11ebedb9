"""The depth that a reclustering would leave, before it runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidemark.clustering.planning.depth import depths_of
from tidemark.model.file_ranges import Boxes, FileRanges

__all__ = ["expected_depth"]

_PIECES = 32  # of a result, which tell its depth from place to place
_FILE_BYTES = 1 << 30  # Delta's own size of rewritten files


def expected_depth(files: FileRanges, taken: Collection[str | None], *, file_bytes: int | None = None) -> float:
    """The average depth of the files if those of the layers `taken` become one result.

    A result has disjoint files in the first column, between its least and its greatest value.
    """
    gone, left, size = [], [], 0
    for file, cube in enumerate(files.cubes):
        if (None if cube is None else cube[0]) in taken:
            gone.append(file)
            size += files.sizes[file]
        else:
            left.append(file)
    least, greatest = _pieces(files.boxes.of(gone))
    kept = files.boxes.of(left)
    together = Boxes(
        tuple([*one, *more] for one, more in zip(kept.least, least, strict=True)),
        tuple([*one, *more] for one, more in zip(kept.greatest, greatest, strict=True)),
        [*kept.constant, *([False] * len(least[0]))],
    )
    depths = depths_of(together).depths
    result = max(1, round(size / (file_bytes or _FILE_BYTES))) if gone else 0
    of_pieces = sum(depths[len(left) :]) / max(1, len(least[0]))
    total = len(left) + result
    return (sum(depths[: len(left)]) + result * of_pieces) / total if total else 0.0


def _pieces(gone: Boxes) -> tuple[list[list[int]], list[list[int]]]:
    """The result in pieces: their least and greatest ranks in each column."""
    wide = [index for index, high in enumerate(gone.greatest[0]) if high > 0]  # the others have only NULL
    if not wide:
        return [[] for _ in gone.least], [[] for _ in gone.least]
    boxes = gone.of(wide)
    ends = _quantiles(sorted({*boxes.least[0], *boxes.greatest[0]}))
    starts = ends[:-1] or ends
    stops = [*(end - 1 for end in ends[1:-1]), ends[-1]]
    least = [starts, *([min(column)] * len(starts) for column in boxes.least[1:])]
    greatest = [stops, *([max(column)] * len(starts) for column in boxes.greatest[1:])]
    return least, greatest


def _quantiles(ends: Sequence[int]) -> list[int]:
    """Up to 33 of the ends, at even distances."""
    if len(ends) <= _PIECES:
        return list(ends)
    return [ends[index * (len(ends) - 1) // _PIECES] for index in range(_PIECES + 1)]
