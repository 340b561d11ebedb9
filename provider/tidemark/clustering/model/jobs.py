"""The jobs of clustering."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tidemark.model.foreign_json import foreign_object
from tidemark.model.jobs import Job
from tidemark.model.streams import TableRef

__all__ = ["RECLUSTER", "SET_KEY", "KeyRequest", "KeySet", "ReclusterReport", "ReclusterRequest", "mark_of", "marked"]

_MARK = "tidemark_recluster"


@dataclass(frozen=True)
class KeyRequest:
    """Let a table have this clustering key; without columns none."""

    table: TableRef
    key: tuple[str, ...]


@dataclass(frozen=True)
class KeySet:
    """The version of the table afterwards."""

    version: int


@dataclass(frozen=True)
class ReclusterRequest:
    """Rewrite files of a table. `mark`: of the commit. `cube_bytes`: results of earlier runs that are smaller are
    rewritten with the new files. `most_bytes`: at least as much as becomes one result. `full`: also results by another
    key.
    """

    table: TableRef
    mark: str
    cube_bytes: int
    most_bytes: int
    full: bool = False
    file_bytes: int | None = None


@dataclass(frozen=True)
class ReclusterReport:
    """The time of the rewriting. `conflict`: other writers were first at each attempt, and nothing was rewritten.
    `lost`: the attempts at which they were.
    """

    seconds: float
    conflict: str | None = None
    lost: int = 0


SET_KEY = Job("set_clustering_key", KeyRequest, KeySet, "clustering.driver.job_set_key:set_key")
RECLUSTER = Job(
    "recluster", ReclusterRequest, ReclusterReport, "clustering.driver.job_recluster:recluster", is_long=True
)


def mark_of(store_id: str, uid: str) -> str:
    """The `userMetadata` of the commit of a reclustering."""
    return json.dumps({_MARK: {"store": store_id, "uid": uid}}, sort_keys=True)


def marked(text: str | None, store_id: str) -> str | None:
    """The reclustering of that store whose commit has the `userMetadata`; None for any other."""
    found = foreign_object(text).get(_MARK)
    if not isinstance(found, dict) or found.get("store") != store_id:
        return None
    uid = found.get("uid")
    return uid if isinstance(uid, str) else None
