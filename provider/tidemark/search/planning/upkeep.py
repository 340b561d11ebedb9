"""The work of an upkeep: which files of the base a search table does not cover yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.model.table_log import AddFile
from tidemark.search.model.paths import SearchPath

__all__ = ["Batch", "Upkeep", "planned_upkeep"]


@dataclass(frozen=True)
class Batch:
    """Files that one commit covers, by the same paths."""

    paths: tuple[SearchPath, ...]
    files: tuple[AddFile, ...]

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class Upkeep:
    """`rebuild`: the search table is emptied with the first batch. `ended`: ids whose rows are removed before, since
    they are of dropped paths, or of the paths of another store.
    """

    rebuild: bool
    batches: tuple[Batch, ...]
    ended: tuple[int, ...]


def planned_upkeep(
    live: Mapping[str, AddFile],
    covered: Mapping[int, frozenset[str]],
    stored: Iterable[int],
    paths: Sequence[SearchPath],
    *,
    most_bytes: int,
) -> Upkeep:
    """The batches for the files of the base. `covered`: path id → names of files. `stored`: ids with rows;
    one that is not covered has rows of another meaning.

    If more than half of the files that are covered are gone, all is built again, once.
    """
    known = frozenset().union(*covered.values()) if covered else frozenset()
    gone = sum(name not in live for name in known)
    rebuild = bool(known) and 2 * gone > len(known)
    wanted = {path.id for path in paths} & covered.keys()
    ended = () if rebuild else tuple(sorted(one for one in stored if one not in wanted and one > 0))
    missing: dict[tuple[int, ...], list[AddFile]] = {}
    for name, file in live.items():
        lacking = tuple(path.id for path in paths if rebuild or name not in covered.get(path.id, frozenset()))
        if lacking:
            missing.setdefault(lacking, []).append(file)
    by_id = {path.id: path for path in paths}
    batches = [
        Batch(tuple(by_id[one] for one in ids), tuple(part))
        for ids, files in missing.items()
        for part in _parts(files, most_bytes)
    ]
    return Upkeep(rebuild, tuple(batches), ended)


def _parts(files: Sequence[AddFile], most_bytes: int) -> Iterator[list[AddFile]]:
    part: list[AddFile] = []
    size = 0
    for file in files:
        if part and size + file.size > most_bytes:
            yield part
            part, size = [], 0
        part.append(file)
        size += file.size
    if part:
        yield part
