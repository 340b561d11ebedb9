"""Stages and file formats are created, changed and dropped by the same rules: one live object for each name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.pipes.model.pipes import NamedFormat, Stage
from tidemark.pipes.planning.names import listed, require_one_way

__all__ = ["NamedObjects"]

One = TypeVar("One", Stage, NamedFormat)


class _End(Protocol):
    def __call__(self, connection: sa.Connection, uid: str, *, at: datetime) -> bool: ...


def _nothing(connection: sa.Connection, one: object) -> None:
    pass


@dataclass(frozen=True)
class NamedObjects(Generic[One]):
    """One kind of objects, by its moves in the store. `taken`: the error about a name that another object has.

    `check`: called with a definition before it is created; its error stops the creation.
    """

    lookup: Callable[[sa.Connection, str], One | None]
    find: Callable[[sa.Connection, str], One]
    live: Callable[[sa.Connection], tuple[One, ...]]
    insert: Callable[[sa.Connection, One], None]
    change: Callable[[sa.Connection, One], bool]
    end: _End
    taken: Callable[[str], TidemarkError]
    check: Callable[[sa.Connection, One], None] = _nothing

    def create(self, store: ControlStore, wanted: One, *, or_replace: bool, if_not_exists: bool) -> One:
        """The object `wanted`, or the existing one of its name with `if_not_exists`. `or_replace` gives the existing
        one this definition; its uid and its age stay. Raises what `taken` and `check` make, and InvalidArgument.
        """
        require_one_way(or_replace=or_replace, if_not_exists=if_not_exists)

        def create(connection: sa.Connection) -> One:
            existing = self.lookup(connection, wanted.name)
            if existing is not None and if_not_exists:
                return existing
            if existing is not None and not or_replace:
                raise self.taken(existing.name)
            self.check(connection, wanted)
            if existing is None:
                self.insert(connection, wanted)
                return wanted
            return self._changed(connection, replace(wanted, uid=existing.uid, created_at=existing.created_at))

        return store.write(create)

    def alter(
        self,
        store: ControlStore,
        name: str,
        define: Callable[[sa.Connection, One], One],
        *,
        comment: str | None,
        rename_to: str | None,
        if_exists: bool,
    ) -> One | None:
        """The object after `define`; an empty comment removes it. None if it does not exist with `if_exists`.

        Raises the error of `find`, and what `taken` and `define` make.
        """

        def alter(connection: sa.Connection) -> One | None:
            found = self._found(connection, name, if_exists)
            if found is None:
                return None
            changed = define(connection, found)
            if comment is not None:
                changed = replace(changed, comment=comment or None)
            if rename_to is not None:
                self._require_free(connection, rename_to, found)
                changed = replace(changed, name=rename_to.strip())
            return self._changed(connection, changed)

        return store.write(alter)

    def drop(self, store: ControlStore, name: str, *, if_exists: bool) -> One | None:
        """End the object and return what it was. None if it did not exist with `if_exists`. Raises the error of
        `find`.
        """

        def drop(connection: sa.Connection) -> One | None:
            found = self._found(connection, name, if_exists)
            if found is not None:
                self.end(connection, found.uid, at=store.clock())
            return found

        return store.write(drop)

    def found(self, store: ControlStore, name: str) -> One | None:
        """The object of that name, or None."""
        return store.read(lambda connection: self.lookup(connection, name))

    def get(self, store: ControlStore, name: str) -> One:
        """The object of that name. Raises the error of `find`."""
        return store.read(lambda connection: self.find(connection, name))

    def listed(self, store: ControlStore, like: str | None) -> tuple[One, ...]:
        """All by name. `like`: a pattern of LIKE for the last part of the name."""
        return listed(store.read(self.live), like)

    def _found(self, connection: sa.Connection, name: str, if_exists: bool) -> One | None:
        return self.lookup(connection, name) if if_exists else self.find(connection, name)

    def _changed(self, connection: sa.Connection, one: One) -> One:
        self.change(connection, one)
        return one

    def _require_free(self, connection: sa.Connection, name: str, one: One) -> None:
        other = self.lookup(connection, name)
        if other is not None and other.uid != one.uid:
            raise self.taken(other.name)
