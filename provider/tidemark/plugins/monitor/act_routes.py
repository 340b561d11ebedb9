"""The routes of acts. One offers them, and the other does one. That takes the right to edit the owner's DAG, the state
that was shown and a reason. It takes a value for each field of the act, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi import Path as InPath
from fastapi.responses import JSONResponse
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from tidemark.control.object_acts import Act, ActTools, act_on, offered_now
from tidemark.control.object_kinds import KINDS
from tidemark.control.object_list import of_keys
from tidemark.control.object_revisions import facts_of, token_of
from tidemark.errors import (
    ActFieldsInvalid,
    InvalidArgument,
    LakeError,
    ObjectChanged,
    ObjectGone,
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
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["add_acts"]

PATIENCE = 30.0  # seconds for an act, which may read a log
AT_ONCE, OF_ONE_OBJECT = 4, 1
NO_RIGHT = "You lack the right to edit the DAG that owns the object. The command beside it does the same."
NO_END = "The act has not ended within 30 s. Check the history of acts before you try again: the act may be done."

ObjectsKind = Annotated[str, InPath(pattern=f"^({'|'.join(KINDS)})$", description=f"One of {', '.join(KINDS)}.")]
Uid = Annotated[str, InPath(max_length=100, pattern=NO_NUL)]
ActName = Annotated[str, InPath(max_length=32, pattern=NO_NUL, description="One of those that the overview offers.")]

FieldName = Annotated[str, Field(max_length=32, pattern=NO_NUL)]
Words = Annotated[str, Field(max_length=1000, pattern=NO_NUL)]
Names = Annotated[list[Words], Field(max_length=1000)]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ActWish:
    """`revision`: that of the object as it was shown. `why`: a reason, which the history keeps. `values`: of the act's
    fields; one that is left out has its default.
    """

    revision: Annotated[str, Field(max_length=8000)]
    why: Annotated[str, Field(min_length=1, max_length=1000, pattern=NO_NUL)]
    values: Annotated[dict[FieldName, bool | Words | Names], Field(max_length=20)] = field(default_factory=dict)


def add_acts(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    """Adds the routes. Airflow's audit log has each attempt; our own history has each act that was done."""
    _add_offers(app, gates, clock)
    threads = OwnThreads("tidemark-monitor-acts", most=AT_ONCE, each=OF_ONE_OBJECT)
    conflict: dict[int | str, dict[str, Any]] = {
        409: {"description": "The object has changed since it was shown, or its state does not allow the act"}
    }

    async def name_owner(request: Request, kind: ObjectsKind, uid: Uid, connection: Connection = None) -> None:
        """Airflow's audit log takes the DAG from the path. With the owner there, the DAG's own list has the attempt."""
        owner = None
        with suppress(HTTPException, TidemarkError, SQLAlchemyError, OSError):  # the route meets it again, and says so
            owner = await gate_to(gates, connection).ask(lambda monitored: _owner(monitored, kind, uid, clock()))
        request.path_params["dag_id"] = owner

    @app.post(
        API + "/objects/{kind}/{uid}/acts/{act}",
        responses={**refusals("object"), **conflict},
        dependencies=[Depends(name_owner), Depends(action_logging("tidemark_act"))],
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
        connection: Connection = None,
    ) -> Any:
        """Act on an object as it was shown. If it has changed since, nothing is done, and the answer says what has."""
        gate = gate_to(gates, connection)
        monitored, owner = await gate.ask(lambda monitored: (monitored, _owner(monitored, kind, uid, clock())))
        if not may(owner):
            raise HTTPException(403, NO_RIGHT)
        return await _waited_for(
            threads, monitored, Act(kind, uid, act, wish.revision, who, wish.why, wish.values), readable
        )


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
    threads: OwnThreads, monitored: MonitoredConnection, meant: Act, readable: Collection[str]
) -> ActDoneAnswer | JSONResponse:
    """The answer once the act is done or refused. Raises HTTPException 503 if that takes too long."""
    work = threads.submit(lambda: _done(monitored, meant), about=(f"{meant.kind} {meant.uid}",))
    try:
        return await asyncio.wait_for(asyncio.wrap_future(work), PATIENCE)
    except TimeoutError as error:
        log.error("The act %s on %s %s has not ended within %s s", meant.act, meant.kind, meant.uid, PATIENCE)
        raise HTTPException(503, NO_END) from error
    except TidemarkError as error:
        return _refused(error, readable)


def _owner(monitored: MonitoredConnection, kind: str, uid: str, now: datetime) -> str | None:
    if monitored.store is None:
        raise HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
    found = monitored.store.read(lambda connection: of_keys(connection, [(kind, uid)], now=now))
    if not found:
        raise HTTPException(404, str(ObjectGone(kind=kind, uid=uid)))
    return found[0].owner_dag


def _done(monitored: MonitoredConnection, meant: Act) -> ActDoneAnswer:
    assert monitored.store is not None
    hook = TidemarkHook(monitored.conn_id)
    options = hook.settings.storage_options
    tools = ActTools(monitored.tables, source_of, event_log_path(hook), lake_tables_of(hook), options)
    act_on(monitored.store, tools, meant)
    facts = monitored.store.read(lambda connection: facts_of(connection, meant.kind, [meant.uid])).get(meant.uid)
    state = None if facts is None else facts["state"]
    return ActDoneAnswer(meant.kind, meant.uid, meant.act, state, None if facts is None else token_of(facts))


def _refused(error: TidemarkError, readable: Collection[str]) -> JSONResponse:
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
    return JSONResponse({"detail": _in_words(error, readable)}, 409)


def _in_words(error: TidemarkError, readable: Collection[str]) -> str:
    """An error may name the run that holds the object."""
    run = error.facts.get("key")
    hidden = isinstance(run, str) and actor(run, readable).kind == "hidden"
    return f"{type(error).__name__}: {FOR_OTHERS if hidden else error}"
