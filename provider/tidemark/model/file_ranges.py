"""The ranges of columns in the data files of a table, as the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Bound", "Boxes", "FileRanges", "KeyColumn"]


@dataclass(frozen=True)
class KeyColumn:
    """A column by which a table may be clustered. `path`: its physical name, of a nested column each part. `kind`:
    Delta's name of its type. `partition`: files are in a partition of it.
    """

    name: str
    path: tuple[str, ...]
    kind: str
    partition: bool = False


@dataclass(frozen=True)
class Bound:
    """A part of a condition: the least and the greatest value of a column that are meant, None for no bound. Texts are
    those of statistics.
    """

    column: str
    least: str | int | float | None = None
    greatest: str | int | float | None = None


@dataclass(frozen=True)
class Boxes:
    """The range of each file in each column. Ends are ranks among all ends of the column, so that they compare as the
    values do; 0 stands for NULL alone.

    `least`, `greatest`: for each column those of all files. `constant`: whether a file has one value of each column. A
    file whose statistics may be truncated is not constant.
    """

    least: tuple[Sequence[int], ...]
    greatest: tuple[Sequence[int], ...]
    constant: Sequence[bool]

    def __len__(self) -> int:
        return len(self.constant)

    def of(self, files: Sequence[int]) -> Boxes:
        """The boxes of these files."""
        return Boxes(
            tuple([column[file] for file in files] for column in self.least),
            tuple([column[file] for file in files] for column in self.greatest),
            [self.constant[file] for file in files],
        )


@dataclass(frozen=True)
class FileRanges:
    """The files of a table at a version that have statistics of all `columns`, and the paths of the others.

    `sizes`: in bytes, less the share of deleted rows. `cubes`: the clustering run that wrote each file, with the
    columns that it clustered by; None for files as they arrived. `without_sizes`: cube and size of each file without
    statistics. `beside`: the same of each file that no condition means, if there was one.
    """

    version: int
    columns: tuple[KeyColumn, ...]
    boxes: Boxes
    sizes: Sequence[int]
    cubes: Sequence[tuple[str, str] | None]
    without: tuple[str, ...] = ()
    without_sizes: tuple[tuple[tuple[str, str] | None, int], ...] = ()
    beside: tuple[tuple[tuple[str, str] | None, int], ...] = ()

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(self.sizes) + sum(size for _, size in (*self.without_sizes, *self.beside))

    def only(self, files: Sequence[int]) -> FileRanges:
        """These files alone; the others are beside them."""
        kept = set(files)
        others = tuple((self.cubes[one], self.sizes[one]) for one in range(len(self.boxes)) if one not in kept)
        return replace(
            self,
            boxes=self.boxes.of(files),
            sizes=[self.sizes[one] for one in files],
            cubes=[self.cubes[one] for one in files],
            beside=(*self.beside, *others),
        )
