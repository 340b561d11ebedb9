"""The ranges of columns in the data files of a table, as the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Boxes", "FileRanges", "KeyColumn"]


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
    columns that it clustered by; None for files as they arrived.
    """

    version: int
    columns: tuple[KeyColumn, ...]
    boxes: Boxes
    sizes: Sequence[int]
    cubes: Sequence[tuple[str, str] | None]
    without: tuple[str, ...] = ()
    without_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(self.sizes) + self.without_bytes
