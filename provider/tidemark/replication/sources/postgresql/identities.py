"""By what a table's rows are known in the log, and why some tables cannot be replicated. Pure.

PostgreSQL refuses UPDATE and DELETE on a published table without a replica identity. A mistake here breaks the
application that owns the table, so every doubt is an obstacle.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tidemark.replication.model.replication import ObjectName
from tidemark.replication.sources.postgresql.names import qualified

__all__ = ["Identity", "KeyIndex", "Obstacle", "Relation", "RelationKind", "keys_of", "obstacle"]


class RelationKind(StrEnum):
    """The kind of a relation, for its log."""

    TABLE = "table"
    PARTITIONED = "partitioned table"
    PARTITION = "partition"
    UNLOGGED = "unlogged table"
    TEMPORARY = "temporary table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    FOREIGN_TABLE = "foreign table"


class Identity(StrEnum):
    """REPLICA IDENTITY: what of an old row is in the log."""

    DEFAULT = "default"  # the primary key, if there is one
    FULL = "full"
    NOTHING = "nothing"
    INDEX = "index"


@dataclass(frozen=True)
class KeyIndex:
    """A primary key's index, or the one that REPLICA IDENTITY USING INDEX names. `usable`: valid and not deferrable."""

    name: str
    primary: bool
    identity: bool
    usable: bool
    columns: tuple[str, ...]  # in the order of the index


@dataclass(frozen=True)
class Relation:
    """The facts that decide about a relation. `logged`: columns that are in the log. `parts`: partitions of a
    partitioned one.

    `root`: of a partition, the table that it is a part of.
    """

    name: ObjectName
    kind: RelationKind
    identity: Identity
    indexes: tuple[KeyIndex, ...]
    logged: tuple[str, ...]
    parts: tuple[Relation, ...] = ()
    root: ObjectName | None = None


@dataclass(frozen=True)
class Obstacle:
    """Why a relation cannot be replicated, and what to do: mostly SQL to run in the source, with a comment perhaps."""

    problem: str
    remedy: str


def keys_of(relation: Relation) -> tuple[str, ...]:
    """The columns by which old rows are known in the log, in the key's order; () if rows have no key.

    With an identity index these are its columns, also beside a primary key: the log says nothing else of a deleted row.
    A key that is deferrable or not valid is none: within a statement two rows may have the same.
    """
    if relation.identity is Identity.INDEX:
        found = next((index for index in relation.indexes if index.identity), None)
    else:
        found = next((index for index in relation.indexes if index.primary), None)
    return found.columns if found is not None and found.usable and set(found.columns) <= set(relation.logged) else ()


def obstacle(relation: Relation) -> Obstacle | None:
    """The obstacle that forbids to publish the relation; None if there is none."""
    other = _not_a_table(relation)
    if other is not None:
        return other
    if not relation.logged:
        return Obstacle("has no column that is in the log", "Add a column that is not generated.")
    return _without_identity(relation) or (_parted(relation) if relation.kind is RelationKind.PARTITIONED else None)


def _not_a_table(relation: Relation) -> Obstacle | None:
    table = qualified(relation.name)
    root = relation.root.text if relation.root is not None else "another table"
    found = {
        RelationKind.PARTITION: (f"is a partition of {root}, which is replicated as a whole", f"Name {root} instead."),
        RelationKind.UNLOGGED: ("is unlogged: its changes are not in the log", f"ALTER TABLE {table} SET LOGGED"),
        RelationKind.TEMPORARY: (
            "is a temporary table: it belongs to one session, and its changes are not in the log",
            "Write its rows into an ordinary table.",
        ),
        RelationKind.VIEW: ("is a view: it has no changes of its own", "Replicate the tables that it reads."),
        RelationKind.MATERIALIZED_VIEW: (
            "is a materialized view: its changes are not decoded from the log",
            "Replicate the tables that it reads.",
        ),
        RelationKind.FOREIGN_TABLE: (
            "is a foreign table: its rows, and their log, are on another server",
            "Replicate it from that server.",
        ),
    }.get(relation.kind)
    return Obstacle(*found) if found is not None else None


def _without_identity(relation: Relation) -> Obstacle | None:
    table, identity = qualified(relation.name), relation.identity
    if identity is Identity.FULL:
        return None
    full = f"ALTER TABLE {table} REPLICA IDENTITY FULL"
    if identity is Identity.NOTHING:
        back = _default(relation) if _primary(relation) else full
        return Obstacle("has REPLICA IDENTITY NOTHING: the application could no longer update its rows", back)
    if identity is Identity.INDEX:
        named = [index for index in relation.indexes if index.identity]
        if not named:
            return Obstacle("lost the index that is its replica identity", full)
        return _unusable(relation, named[0], full)
    primary = _primary(relation)
    if primary is None:
        problem = "has neither a primary key nor another replica identity: the application could not update its rows"
        if relation.kind is RelationKind.PARTITIONED:
            return Obstacle(f"{problem} any more", f"ALTER TABLE {table} ADD PRIMARY KEY (…)")
        return Obstacle(f"{problem} any more", f"{full} -- or give it a primary key")
    return _unusable(relation, primary, full)


def _primary(relation: Relation) -> KeyIndex | None:
    return next((index for index in relation.indexes if index.primary), None)


def _unusable(relation: Relation, index: KeyIndex, remedy: str) -> Obstacle | None:
    if not index.usable:
        problem = f"has a key, {index.name}, that is deferrable or not valid, so is not a replica identity"
        return Obstacle(f"{problem}: the application could no longer update its rows", remedy)
    hidden = [name for name in index.columns if name not in relation.logged]
    if hidden:
        return Obstacle(f"has a key with generated columns ({', '.join(hidden)}), which are not in the log", remedy)
    return None


def _parted(relation: Relation) -> Obstacle | None:
    """Old rows are logged by the identity of the partition and sent under the root's. So the two must agree, also for
    partitions that are added later, which begin with the default.
    """
    if relation.identity is not Identity.DEFAULT:
        problem = (
            f"is partitioned and has REPLICA IDENTITY {relation.identity.upper()}, which new partitions do not get"
        )
        return Obstacle(problem, f"{_default(relation)} -- and give it a primary key if it has none")
    return next((found for part in relation.parts if (found := _unlike_root(part)) is not None), None)


def _unlike_root(part: Relation) -> Obstacle | None:
    if part.kind not in (RelationKind.PARTITION, RelationKind.PARTITIONED):
        return Obstacle(f"has a partition, {part.name.text}, that is not an ordinary table ({part.kind})", "Detach it.")
    if part.identity not in (Identity.DEFAULT, Identity.FULL):
        problem = f"has a partition, {part.name.text}, with REPLICA IDENTITY {part.identity.upper()}"
        return Obstacle(problem, _default(part))
    return None


def _default(relation: Relation) -> str:
    return f"ALTER TABLE {qualified(relation.name)} REPLICA IDENTITY DEFAULT"
