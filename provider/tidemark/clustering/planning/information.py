"""The state of a table's clustering, from the ranges of its files."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.clustering.model.information import ClusteringInformation, FailedRecluster
from tidemark.clustering.model.tables import Layer
from tidemark.clustering.planning.depth import depths_of
from tidemark.clustering.planning.keys import in_words
from tidemark.model.file_ranges import FileRanges
from tidemark.model.foreign_json import parsed

__all__ = ["information_of", "layers_of"]

_SHOWN = 3


def information_of(files: FileRanges, errors: Sequence[FailedRecluster] = ()) -> ClusteringInformation:
    """The state of the clustering by the columns of the files."""
    found = depths_of(files.boxes)
    return ClusteringInformation(
        cluster_by_keys=in_words([one.name for one in files.columns]),
        notes=_notes(files),
        total_partition_count=len(files.boxes) + len(files.without),
        total_constant_partition_count=sum(files.boxes.constant),
        average_overlaps=found.average_overlaps,
        average_depth=found.average_depth,
        partition_depth_histogram=found.histogram(),
        clustering_errors=tuple(errors),
        version=files.version,
    )


def layers_of(files: FileRanges, key: Sequence[str]) -> tuple[Layer, ...]:
    """The files by the clustering run that wrote them, those as they arrived under None. Their ids and keys are tags
    of Delta. Files beside the condition, and files without statistics, count with their bytes alone, since Delta
    rewrites a result as a whole.
    """
    groups: dict[str | None, list[int]] = {}
    keeps: dict[str | None, bool] = {None: True}
    for index, cube in enumerate(files.cubes):
        groups.setdefault(_run_of(cube), []).append(index)
    for cube, _ in (*files.without_sizes, *files.beside):
        groups.setdefault(_run_of(cube), [])
    sizes = dict.fromkeys(groups, 0)
    for cube, size in (*zip(files.cubes, files.sizes, strict=True), *files.without_sizes, *files.beside):
        sizes[_run_of(cube)] += size
        if cube is not None:
            keeps[cube[0]] = _columns(cube[1]) == [_folded(column) for column in key]
    without: dict[str | None, list[int]] = {}
    for cube, size in files.without_sizes:
        without.setdefault(_run_of(cube), []).append(size)
    return tuple(
        Layer(
            name,
            sizes[name],
            len(members),
            depths_of(files.boxes.of(members)).average_depth,
            keeps[name],
            len(without.get(name, ())),
            sum(without.get(name, ())),
        )
        for name, members in groups.items()
    )


def _run_of(cube: tuple[str, str] | None) -> str | None:
    return None if cube is None else cube[0]


def _columns(tag: str) -> list[str]:
    """The columns in Delta's tag, a JSON list of names. A name with a dot is in backticks there."""
    try:
        said = parsed(tag)
    except ValueError:
        said = None
    names = said if isinstance(said, list) else tag.strip().removeprefix("[").removesuffix("]").split(",")
    return [_folded(str(one).strip().strip('"')) for one in names]


def _folded(name: str) -> str:
    return name.replace("`", "").casefold()


def _notes(files: FileRanges) -> str:
    if not files.without:
        return ""
    names = ", ".join(one.name for one in files.columns)
    shown = ", ".join(files.without[:_SHOWN])
    more = ", …" if len(files.without) > _SHOWN else ""
    return (
        f"{len(files.without)} files have no statistics of {names}. They are in total_partition_count alone:"
        f" {shown}{more}"
    )
