"""Parts of statements on search optimization."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.search.model.paths import Method

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A path as a user names it: a method and a column. `parts`: the names of the column and of fields in it; empty for
    every column (`*`). `method`: None in a DROP for all of the column. `id`: that of the path, in a DROP.
    """

    method: Method | None
    parts: tuple[str, ...] = ()
    id: int | None = None

    @property
    def said(self) -> str:
        """The target as a statement names it."""
        if self.id is not None:
            return str(self.id)
        name = ".".join(self.parts) or "*"
        return name if self.method is None else f"{self.method.value}({name})"
