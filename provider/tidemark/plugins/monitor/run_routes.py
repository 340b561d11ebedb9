"""The route behind the tabs of Airflow's pages of a DAG, a run and a task: the work of these tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import FastAPI, HTTPException, Query

from tidemark.control.run_keys import RunPart
from tidemark.model.statements import TransactionKey
from tidemark.plugins.monitor.access import ReadableDags
from tidemark.plugins.monitor.answers import TransactionAnswer, transaction_answer
from tidemark.plugins.monitor.asking import API, Connection, Cursor, Text, gate_to, refusals
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gate, Gates
from tidemark.plugins.monitor.object_answers import AnyObjectAnswer, any_object_answer
from tidemark.streams.worker.runs import RunShown, RunWish, shown_run

__all__ = ["RunAnswer", "TouchedAnswer", "add_runs"]

Portion = Annotated[
    int | None,
    Query(ge=1, le=200, description="At most this many of each list. Without it: 50 transactions, 200 objects."),
]
NO_RIGHT = "You may not see this DAG, or no DAG has that id."


@dataclass(frozen=True)
class TouchedAnswer:
    """An object that the tasks touched, with words for what they did. `why`: the reason that the store has kept."""

    object: AnyObjectAnswer
    did: str
    why: str | None


@dataclass(frozen=True)
class NextAnswer:
    """The window that the next run of a stream's consumer would take, if its task sets no bound. The store has its
    offset, and a look in the background has found the newest version.

    `state`: ready, nothing (is new), open (that window is finished first), unreadable, or unknown until a look.
    `rows`, `bytes`: estimates by the `sample` newest windows of these tasks.
    """

    uid: str
    stream: str
    state: Literal["ready", "nothing", "open", "unreadable", "unknown"]
    from_version: int
    to_version: int | None
    versions: int | None
    initial_rows: bool
    rows: int | None
    bytes: int | None
    sample: int
    problem: str | None


@dataclass(frozen=True)
class RunAnswer:
    """The work of the tasks of a DAG, of a run, or of one task. `transactions`: the newest, newest first, each with its
    windows, its rows, and the evidence of each target. `touched`: objects that the tasks of a run touched;
    `more_touched`: how many follow. `owned`: objects that a run of the DAG created or wrote last, the worst first, of
    `total`. `unseen`: uids of objects whose lag is not known, since no look has read their logs. `next`: the next
    window of each stream among them.

    `cursors`: for what follows, by the name of the list. `continues`: the list that the cursor of the question is of.
    The answer then has no other one.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    dag_id: str
    run_id: str | None
    task_id: str | None
    map_index: int | None
    continues: Literal["transactions", "touched", "owned"] | None
    transactions: tuple[TransactionAnswer, ...]
    touched: tuple[TouchedAnswer, ...]
    more_touched: int
    owned: tuple[AnyObjectAnswer, ...]
    total: int
    cursors: Mapping[str, str]
    unseen: tuple[str, ...]
    next: tuple[NextAnswer, ...]


def add_runs(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    """Adds the route."""

    @app.get(f"{API}/run", responses=refusals("connection"))
    async def run(
        readable: ReadableDags,
        dag_id: Annotated[Text, Query(min_length=1, description="The caller must have the right to read this DAG.")],
        connection: Connection = None,
        run_id: Text = "",
        task_id: Text = "",
        map_index: Annotated[int | None, Query(ge=-1, le=1_000_000, description="-1: the task is not mapped.")] = None,
        cursor: Cursor = None,
        limit: Portion = None,
    ) -> RunAnswer:
        """The work of the tasks of a DAG, of one run, or of one task: objects, windows with their rows, and evidence.

        It reads the control store alone. Logs are looked at in the background. A cursor leads to the part of its list
        that follows.
        """
        gate, now = gate_to(gates, connection), clock()
        if dag_id not in readable:
            raise HTTPException(403, NO_RIGHT)
        wish = RunWish(_part(dag_id, run_id, task_id, map_index), limit, cursor)
        monitored, found = await gate.ask(lambda monitored: (monitored, _read(monitored, gate, wish, now)))
        return _answer(monitored, found, wish, now, readable)


def _part(dag_id: str, run_id: str, task_id: str, map_index: int | None) -> RunPart:
    """The smallest part that is named without a gap."""
    if not run_id:
        return RunPart(dag_id)
    return RunPart(dag_id, run_id, task_id, map_index) if task_id else RunPart(dag_id, run_id)


def _read(monitored: MonitoredConnection, gate: Gate, wish: RunWish, now: datetime) -> RunShown:
    store, known = monitored.store, gate.watch.known
    if store is None:
        return RunShown()
    found = store.read(lambda connection: shown_run(connection, wish, known, now=now))
    gate.watch.wake(store, monitored.tables)
    return found


def _answer(
    monitored: MonitoredConnection, found: RunShown, wish: RunWish, now: datetime, readable: Collection[str]
) -> RunAnswer:
    asked_for, part = None, wish.tasks
    if part.run_id is not None and part.task_id is not None and part.map_index is not None:
        asked_for = TransactionKey(part.dag_id, part.run_id, part.task_id, part.map_index)
    return RunAnswer(
        connection=monitored.conn_id,
        connections=connection_ids(),
        store="absent" if monitored.store is None else "ready",
        now=now,
        dag_id=part.dag_id,
        run_id=part.run_id,
        task_id=part.task_id,
        map_index=part.map_index,
        continues=wish.continues,
        transactions=tuple(transaction_answer(one, readable, asked_for=asked_for) for one in found.transactions),
        touched=tuple(
            TouchedAnswer(any_object_answer(one, readable), touch.did, touch.why) for one, touch in found.touched
        ),
        more_touched=found.more_touched,
        owned=tuple(any_object_answer(one, readable) for one in found.owned),
        total=found.total,
        cursors=found.cursors,
        unseen=tuple(sorted(uid for _, uid in found.unseen)),
        next=tuple(NextAnswer(**vars(one)) for one in found.next),
    )
