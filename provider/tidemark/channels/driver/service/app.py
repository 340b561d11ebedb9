"""The ingest service's HTTP: routes, limits, and errors of the tree as answers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tidemark import __version__
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.bodies import plain
from tidemark.channels.driver.service.desk import Body, IngestDesk, Tokens
from tidemark.channels.driver.service.edge import BodyOverLimit, BoundedBodies, misfit_of
from tidemark.channels.driver.service.measures import Measures
from tidemark.channels.driver.service.messages import (
    BulkStatus,
    ChannelAnswer,
    Opened,
    OpenRequest,
    Problem,
    RowsAnswer,
    StatusRequest,
)
from tidemark.channels.planning.refusals import facts_to_send
from tidemark.errors import (
    BodyTooLarge,
    BodyUnreadable,
    ChangeNotCommitted,
    ChannelClosed,
    ChannelHasUncommittedRows,
    ChannelInvalid,
    ChannelNotFound,
    ChannelTokenLost,
    CommitConflict,
    CommitsMayBeLost,
    ContinuationTokenStale,
    FilesNotQueued,
    IngestBusy,
    IngestForbidden,
    IngestPaused,
    IngestUnauthenticated,
    InvalidArgument,
    KernelFailed,
    PipeBusy,
    PipeForbidden,
    PipeNotFound,
    PipeStalled,
    RowsNotCommitted,
    RowsRefused,
    StorageRefused,
    StorageUnreachable,
    TableNotFound,
    TableNotSupported,
    TidemarkError,
    TokenOutOfOrder,
)

__all__ = ["ServiceLimits", "ingest_app"]

_BUSY = 429
_STATUS: dict[type[TidemarkError], int] = {
    IngestUnauthenticated: 401,
    IngestForbidden: 403,
    PipeForbidden: 403,
    TableNotFound: 404,
    ChannelNotFound: 404,
    PipeNotFound: 404,
    ContinuationTokenStale: 400,
    InvalidArgument: 400,
    BodyUnreadable: 400,
    ChannelInvalid: 409,
    ChannelClosed: 409,
    ChannelHasUncommittedRows: 409,
    ChannelTokenLost: 409,
    CommitsMayBeLost: 409,
    TableNotSupported: 409,
    TokenOutOfOrder: 409,
    BodyTooLarge: 413,
    RowsRefused: 422,
    IngestBusy: _BUSY,
    PipeBusy: _BUSY,
    RowsNotCommitted: 503,
    ChangeNotCommitted: 503,
    CommitConflict: 503,
    FilesNotQueued: 503,
    IngestPaused: 503,
    KernelFailed: 503,
    PipeStalled: 503,
    StorageRefused: 503,
    StorageUnreachable: 503,
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}

Table = Annotated[str, Path(max_length=500, description="schema.table, as below the lake's root")]
# Servers decode %2F before they look for a route, so a name with a slash has several segments of a path there.
ChannelName = Annotated[str, Path(max_length=260)]
Text = Annotated[str | None, Query(max_length=10_000)]


@dataclass(frozen=True)
class ServiceLimits:
    """`body_bytes`: of a request, before and after decompression."""

    body_bytes: int = 16 << 20


def ingest_app(
    desk: IngestDesk, access: Access, measures: Measures, limits: ServiceLimits, further: Iterable[APIRouter] = ()
) -> FastAPI:
    """The app. Each route but /health and /metrics needs a bearer token, and one for its tables. `further`: routes of
    other subjects, which ask for a token themselves.
    """
    app = FastAPI(title="Tidemark ingest service", version=__version__, docs_url=None, redoc_url=None)
    app.exception_handler(TidemarkError)(_problem)
    app.exception_handler(BodyOverLimit)(_over_limit)
    app.exception_handler(RequestValidationError)(_misfit)
    app.exception_handler(ClientDisconnect)(_gone)
    app.add_middleware(BoundedBodies, limit=limits.body_bytes)
    app.middleware("http")(_measured(measures))

    def guard(request: Request, table: Table, authorization: Annotated[str | None, Header()] = None) -> None:
        grant = access.writer(authorization)
        access.require(grant, table)
        request.state.grant = grant

    router = APIRouter(prefix="/v1/tables/{table}", dependencies=[Depends(guard)], responses=_PROBLEMS)
    _add_channel_routes(router, desk, access)
    _add_rows_route(router, desk, measures, limits)
    app.include_router(router)
    for more in further:
        app.include_router(more)
    _add_operations(app, desk, measures)
    return app


def _add_channel_routes(router: APIRouter, desk: IngestDesk, access: Access) -> None:
    @router.put("/channels/{channel:path}", summary="Open a channel")
    def open_channel(request: Request, table: Table, channel: ChannelName, how: OpenRequest | None = None) -> Opened:
        wanted, grant = how or OpenRequest(), request.state.grant
        if wanted.quarantine is not None:
            access.require(grant, wanted.quarantine)
        return desk.open(table, channel, wanted, grant.name)

    @router.post("/channels/{channel:path}/flush", summary="Wait until the channel's rows are committed")
    def flush(table: Table, channel: ChannelName) -> ChannelAnswer:
        return desk.flush(table, channel)

    @router.delete("/channels/{channel:path}", status_code=204, summary="Drop a channel with its offset token")
    def drop(
        table: Table, channel: ChannelName, created_on_ms: int | None = None, client_sequencer: int | None = None
    ) -> None:
        """With `created_on_ms` and `client_sequencer` of the writer's own open, a channel that another writer has
        opened since stays.
        """
        desk.drop(table, channel, _opening(created_on_ms, client_sequencer))

    @router.post("/channel-status", summary="The state of many channels")
    def status(table: Table, asked: StatusRequest) -> BulkStatus:
        return desk.status(table, asked.channel_names)


def _opening(created_on: int | None, sequencer: int | None) -> tuple[int, int] | None:
    if created_on is not None and sequencer is not None:
        return created_on, sequencer
    if created_on is None and sequencer is None:
        return None
    problem = "an open has both numbers; give created_on_ms and client_sequencer, or neither"
    raise InvalidArgument(argument="client_sequencer", value=sequencer, problem=problem)


def _add_rows_route(router: APIRouter, desk: IngestDesk, measures: Measures, limits: ServiceLimits) -> None:
    @router.post("/channels/{channel:path}/rows", summary="Append rows")
    async def append(
        request: Request,
        table: Table,
        channel: ChannelName,
        continuation_token: Annotated[str, Query(max_length=100)],
        offset_token: Text = None,
        start_offset_token: Text = None,
    ) -> RowsAnswer:
        """The body has rows in JSON lines (application/x-ndjson) or an Arrow stream
        (application/vnd.apache.arrow.stream), perhaps compressed by gzip or zstd. `offset_token` is that of the
        last row.
        """
        body = await request.body()
        encoding, media_type = request.headers.get("content-encoding"), request.headers.get("content-type")

        def take() -> RowsAnswer:
            sent = Body(plain(body, encoding, limits.body_bytes), media_type, limits.body_bytes)
            return desk.append(table, channel, sent, Tokens(continuation_token, start_offset_token, offset_token))

        answer = await run_in_threadpool(take)
        measures.took(table, answer.rows, answer.error_count, len(body))
        return answer


def _add_operations(app: FastAPI, desk: IngestDesk, measures: Measures) -> None:
    @app.get("/health", summary="Whether the service runs")
    def health() -> dict[str, Any]:
        return {"status": "ok", "open_channels": desk.open_channels}

    @app.get("/metrics", summary="Metrics in OpenMetrics text")
    def metrics() -> Response:
        return Response(measures.text(), media_type=measures.media_type)


def _measured(measures: Measures) -> Callable[[Request, Callable[[Request], Awaitable[Response]]], Awaitable[Response]]:
    async def measured(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        began = time.perf_counter()
        response = await go_on(request)
        route = request.scope.get("route")
        measures.answered(getattr(route, "name", "none"), response.status_code, time.perf_counter() - began)
        return response

    return measured


async def _problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TidemarkError)
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    headers = {}
    if status == _BUSY:
        headers["Retry-After"] = str(error.facts["seconds"])
    if isinstance(error, IngestUnauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    facts = facts_to_send(error)
    body = Problem(error=type(error).__name__, message=str(error), code=error.facts.get("code"), facts=facts)
    return JSONResponse(body.model_dump(), status, headers)


async def _over_limit(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BodyOverLimit)
    return await _problem(request, error.error)


async def _misfit(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return await _problem(request, misfit_of(error))


async def _gone(_: Request, __: Exception) -> Response:
    """Nobody reads the answer to a client that went away within its body; nothing of it was taken."""
    return Response(status_code=400)
