"""The actor who did something, parsed from the control store's text: a task of a run, a notebook, a person."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tidemark.model.statements import CLIENT_DAG, CLIENT_TASKS, TransactionKey

__all__ = ["Actor", "actor", "actor_of_act", "actor_of_key"]

_TASK = re.compile(
    r"(?P<dag>[^/#\s]+)/(?P<run>.+)/(?P<task>[^/]+)/(?P<map>-?\d+)(?:#(?P<attempt>\d+)@(?P<worker>\S*))?", re.DOTALL
)


@dataclass(frozen=True)
class Actor:
    """`run`: a task, with what leads to it in Airflow. `client`: a notebook or script. `person`: as `said`. `hidden`:
    a task of a DAG that the caller may not read, or that is gone; nothing else is filled then.
    """

    kind: Literal["run", "client", "person", "hidden"]
    said: str | None = None
    dag_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    map_index: int | None = None
    attempt: int | None = None
    worker: str | None = None


def actor(said: str, readable: Collection[str]) -> Actor:
    """The actor behind a stored text: a key `dag/run/task/index`, an owner `key#attempt@host:pid`, or a name."""
    found = _TASK.fullmatch(said)
    if found is None:
        return Actor("person", said=said)
    key = TransactionKey(found["dag"], found["run"], found["task"], int(found["map"]))
    attempt = None if found["attempt"] is None else int(found["attempt"])
    return actor_of_key(key, readable, attempt=attempt, worker=found["worker"])


def actor_of_act(who: str, run: str | None, readable: Collection[str]) -> Actor:
    """The actor: the run's task, since an owner may be another attempt; without a run, the one that `who` names."""
    said = actor(who, readable)
    return actor(run, readable) if run is not None and said.kind == "person" else said


def actor_of_key(
    key: TransactionKey, readable: Collection[str], *, attempt: int | None = None, worker: str | None = None
) -> Actor:
    """The task that owns a transaction, if the caller may read its DAG."""
    if key.dag_id in readable:
        return Actor(
            "run",
            dag_id=key.dag_id,
            run_id=key.run_id,
            task_id=key.task_id,
            map_index=key.map_index,
            attempt=attempt,
            worker=worker,
        )
    if (key.dag_id, key.map_index) == (CLIENT_DAG, -1) and key.task_id in CLIENT_TASKS:
        return Actor("client")
    return Actor("hidden")
