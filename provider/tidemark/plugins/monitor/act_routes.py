"""The routes of acts. One offers them, and the other does one. That takes the right to edit the owner's DAG, the state
that was shown and a reason. It takes a value for each field of the act, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any

from airflow.api_fastapi.logging.decorators import action_logging
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field
from sqlalchemy.exc import SQLAlchemyError

from tidemark.control.object_acts import Act, ActTools, act_on, acts_of, offered_now
from tidemark.control.object_kinds import KINDS
from tidemark.control.object_list import of_keys
from tidemark.control.object_revisions import facts_now, token_of
from tidemark.errors import (
    ActFieldsInvalid,
    ActNotOffered,
    ActTooLate,
    InvalidArgument,
    LakeError,
    ObjectChanged,
    ObjectGone,
    ReplicationRefused,
    StoreError,
    TidemarkError,
)
from tidemark.hooks.lake_tables import lake_tables_of
from tidemark.hooks.replication import event_log_path, source_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.plugins.monitor.access import MayAct, ReadableDags, UserName
from tidemark.plugins.monitor.actors import actor
from tidemark.plugins.monitor.asking import API, NO_NUL, Connection, gate_to, refusals
from tidemark.plugins.monitor.connections import MonitoredConnection
from tidemark.plugins.monitor.gate import Gates
from tidemark.plugins.monitor.overview_answers import ActDoneAnswer, OfferedAnswer, offered_answer
from tidemark.plugins.monitor.owned import is_of_others
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS
from tidemark.replication.model.replication import Replication
from tidemark.replication.sources.open import Source
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["add_acts"]

PATIENCE = 30.0  # seconds for an act, which may read a log
AT_ONCE, OF_ONE_OBJECT = 4, 1  # of one connection, twice: acts in the store alone, and acts that a lake may hang
NEVER_BEGAN = "Other acts that have not ended keep this one from its turn. Nothing was done; try again."
NO_END = (
    "The act has not ended within 30 s. It is done if the history of acts has it in a moment, and otherwise never. "
    "Only a recovery that is changing its source may end later."
)

ObjectsKind = Annotated[str, InPath(pattern=f"^({'|'.join(KINDS)})$", description=f"One of {', '.join(KINDS)}.")]
Uid = Annotated[str, InPath(max_length=100, pattern=NO_NUL)]
ActName = Annotated[str, InPath(max_length=32, pattern=NO_NUL, description="One of the acts that the overview offers.")]

FieldName = Annotated[str, Field(max_length=32, pattern=NO_NUL)]
Words = Annotated[str, Field(max_length=1000, pattern=NO_NUL)]
Names = Annotated[list[Words], Field(max_length=1000)]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Sought:
    """The object of an attempt, looked for once. `beyond`: whether the act reaches beyond the store. `error`: why it is
    not known, which the route raises after the attempt is in the audit log.
    """

    monitored: MonitoredConnection | None = None
    owner: str | None = None
    beyond: bool = True
    error: Exception | None = None


@dataclass(frozen=True)
class ActWish:
    """`revision`: that of the object as it was shown. `why`: a reason, which the history keeps. `values`: of the act's
    fields; one that is left out has its default.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    revision: Annotated[str, Field(max_length=8000)]
    why: Annotated[str, Field(min_length=1, max_length=1000, pattern=NO_NUL)]
    values: Annotated[dict[FieldName, bool | Words | Names], Field(max_length=20)] = field(default_factory=dict)


class _ActThreads:
    """Threads for each connection, and further ones for its acts beyond the store. A lake that hangs keeps no act in
    the store from its turn, and none of another connection.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, bool], OwnThreads] = {}  # the event loop alone asks

    def of(self, conn_id: str, *, beyond: bool) -> OwnThreads:
        """Those for such acts of the connection."""
        new = OwnThreads(f"tidemark-monitor-acts-{conn_id}", most=AT_ONCE, each=OF_ONE_OBJECT)
        return self._pools.setdefault((conn_id, beyond), new)


def add_acts(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    """Adds the routes. Airflow's audit log has each attempt; our own history has each act that was done."""
    _add_offers(app, gates, clock)
    threads = _ActThreads()
    conflict: dict[int | str, dict[str, Any]] = {
        409: {"description": "The object has changed since it was shown, or its state does not allow the act"}
    }

    once = Depends(_seeking(gates, clock))  # for the audit log and for the route

    @app.post(
        API + "/objects/{kind}/{uid}/acts/{act}",
        responses={**refusals("object"), **conflict},
        dependencies=[Depends(_own_keys_alone), once, Depends(action_logging("tidemark_act"))],
        response_model=ActDoneAnswer,
    )
    async def act(
        kind: ObjectsKind,
        uid: Uid,
        act: ActName,
        wish: ActWish,
        readable: ReadableDags,
        may: MayAct,
        who: UserName,
        found: _Sought = once,
    ) -> Any:
        """Act on an object as it was shown. If it has changed since, nothing is done, and the answer says what has."""
        if found.error is not None or found.monitored is None:
            raise found.error or HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
        if not may(found.owner):
            raise HTTPException(403, may.refusal(found.owner))
        meant = Act(kind, uid, act, wish.revision, who, wish.why, wish.values)
        own = threads.of(found.monitored.conn_id, beyond=found.beyond)
        return await _waited_for(own, found.monitored, meant, found.owner, readable)


async def _own_keys_alone(request: Request) -> None:
    """Airflow's audit log takes DAG, run and task from all that is sent, before the body is checked. With other keys an
    attempt would be in the list of another DAG. Raises RequestValidationError.
    """
    sent = {"query": set(request.query_params), "body": await _keys_of_body(request)}
    own = {"query": {"connection"}, "body": {one.name for one in fields(ActWish)}}
    foreign = [(place, key) for place, keys in sent.items() for key in sorted(keys - own[place])]
    if foreign:
        faults = [{"type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted"} for loc in foreign]
        raise RequestValidationError(faults)


async def _keys_of_body(request: Request) -> set[str]:
    """The keys that Airflow reads: of a body that it takes for JSON. Raises RequestValidationError."""
    if "application/json" not in request.headers.get("content-type", "") or not await request.body():
        return set()
    try:
        found = await request.json()
    except ValueError as error:
        fault = {"type": "json_invalid", "loc": ("body",), "msg": "JSON decode error"}
        raise RequestValidationError([fault]) from error
    return set(found) if isinstance(found, dict) else set()


def _seeking(gates: Gates, clock: Callable[[], datetime]) -> Callable[..., Awaitable[_Sought]]:
    async def sought(
        request: Request, kind: ObjectsKind, uid: Uid, act: ActName, connection: Connection = None
    ) -> _Sought:
        """Airflow's audit log takes the DAG from the path. With the owner there, the DAG's own list has the attempt."""
        try:
            found = await gate_to(gates, connection).ask(
                lambda monitored: _Sought(monitored, _owner(monitored, kind, uid, clock()), _reaches_beyond(kind, act))
            )
        except (HTTPException, TidemarkError, SQLAlchemyError, OSError) as error:
            found = _Sought(error=error)
        request.path_params["dag_id"] = found.owner
        return found

    return sought


def _add_offers(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    @app.get(API + "/objects/{kind}/{uid}/acts", responses=refusals("object"))
    async def offered(kind: ObjectsKind, uid: Uid, may: MayAct, connection: Connection = None) -> OfferedAnswer:
        """The acts that an object is offered as it is now, in any state, with their fields and the choices of these.

        The control store alone answers, never a log.
        """

        def read(monitored: MonitoredConnection) -> OfferedAnswer:
            if monitored.store is None:
                raise HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
            try:
                found = monitored.store.read(lambda connection: offered_now(connection, kind, uid, clock()))
            except ObjectGone as error:
                raise HTTPException(404, str(error)) from error
            return offered_answer(found, monitored.conn_id, allowed=may(found.shown.owner_dag))

        return await gate_to(gates, connection).ask(read)


async def _waited_for(
    threads: OwnThreads, monitored: MonitoredConnection, meant: Act, owner: str | None, readable: Collection[str]
) -> ActDoneAnswer | JSONResponse:
    """The answer once the act is done or refused. Raises HTTPException 503 if that takes too long. The act is then not
    stored any more, whenever a lake that hangs may answer. But an act that is changing a source is stored at its
    end. An act that has not begun never begins.
    """
    until = time.monotonic() + PATIENCE
    work = threads.submit(
        lambda: _done(monitored, meant, in_time=lambda: time.monotonic() < until), about=(f"{meant.kind} {meant.uid}",)
    )
    try:
        return await asyncio.wait_for(asyncio.wrap_future(work), PATIENCE)
    except (TimeoutError, ActTooLate) as error:
        log.error("The act %s on %s %s has not ended within %s s", meant.act, meant.kind, meant.uid, PATIENCE)
        raise HTTPException(503, NEVER_BEGAN if work.cancel() else NO_END) from error
    except TidemarkError as error:
        return _refused(error, owner, readable)


def _reaches_beyond(kind: str, act: str) -> bool:
    """An act that is not known is refused in the store alone."""
    return any(one.beyond for one in acts_of(kind) if one.name == act)


def _owner(monitored: MonitoredConnection, kind: str, uid: str, now: datetime) -> str | None:
    if monitored.store is None:
        raise HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
    found = monitored.store.read(lambda connection: of_keys(connection, [(kind, uid)], now=now))
    if not found:
        raise HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
    return found[0].owner_dag


def _done(monitored: MonitoredConnection, meant: Act, *, in_time: Callable[[], bool]) -> ActDoneAnswer:
    assert monitored.store is not None
    hook = TidemarkHook(monitored.conn_id)
    options = hook.settings.storage_options
    tools = ActTools(monitored.tables, _source_of, event_log_path(hook), lake_tables_of(hook), options)
    was = act_on(monitored.store, tools, meant, in_time=in_time)
    now = monitored.store.read(lambda connection: facts_now(connection, meant.kind, meant.uid, was.name))
    if now is None:
        return ActDoneAnswer(meant.kind, meant.uid, meant.act, state=None, revision=None)
    uid, facts = now
    return ActDoneAnswer(meant.kind, uid, meant.act, facts["state"], token_of(facts))


def _source_of(replication: Replication) -> Source:
    """Raises ReplicationRefused if its connection is missing, which is another one than that of the page."""
    try:
        return source_of(replication)
    except AirflowNotFoundException as error:
        problem = f"its connection {replication.source_conn_id} does not exist. Create it in Airflow."
        raise ReplicationRefused(replication=replication.name, problem=problem) from error


def _refused(error: TidemarkError, owner: str | None, readable: Collection[str]) -> JSONResponse:
    """The refusal in words. Raises errors of store and lake, which are nobody's decision."""
    if isinstance(error, StoreError | LakeError):
        raise error
    if isinstance(error, ObjectGone):
        return JSONResponse({"detail": str(error)}, 404)
    if isinstance(error, ActFieldsInvalid):
        return JSONResponse({"detail": str(error), "fields": error.facts["problems"]}, 422)
    if isinstance(error, InvalidArgument):
        fields = {str(error.facts["argument"]): str(error.facts["problem"])}
        return JSONResponse({"detail": str(error), "fields": fields}, 422)
    if isinstance(error, ObjectChanged):
        changed = {name: {"shown": shown, "now": now} for name, (shown, now) in error.facts["changed"].items()}
        return JSONResponse({"detail": str(error), "changed": changed, "revision": error.facts["revision"]}, 409)
    return JSONResponse({"detail": _in_words(error, owner, readable)}, 409)


def _in_words(error: TidemarkError, owner: str | None, readable: Collection[str]) -> str:
    """An error may quote one of the owner's runs, and name the run that holds the object. A role that acts reads no
    more DAGs for that. The acts that are offered are nobody's secret.
    """
    run = error.facts.get("key")
    of_others = is_of_others([owner], readable) and not isinstance(error, ActNotOffered)
    hidden = of_others or (isinstance(run, str) and actor(run, readable).kind == "hidden")
    return f"{type(error).__name__}: {FOR_OTHERS if hidden else error}"
