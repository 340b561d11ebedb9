"""The routes of pipes: insertFiles, insertReport and loadHistoryScan."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path as FilePath
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from tidemark.errors import InvalidArgument, PipeBusy, PipeStalled
from tidemark.jobs.run import utc_now
from tidemark.lake.file_names import FileFilter
from tidemark.pipes.driver.service.files_desk import FilesDesk
from tidemark.pipes.driver.service.known_pipes import KnownPipes
from tidemark.pipes.driver.service.messages import FilesInserted, InsertReport, LoadHistory
from tidemark.pipes.driver.service.reports import PipeReports
from tidemark.pipes.model.served import ServedPipe
from tidemark.pipes.planning.marks import mark_of
from tidemark.pipes.planning.named_files import JSON, TEXT, files_of_body, name_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PipeRoutes", "pipe_routes"]

_REPORTS_AT_ONCE = 4
_SECONDS_TO_WAIT = 2
_LONGEST_ID = 1_000
_SHOWN_UNMATCHED = 100
_EXAMPLE = {"files": [{"path": "2024/orders.csv", "size": 1_000}]}
_ENTRY = {
    "type": "object",
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 1_024},
        "size": {"type": "integer", "minimum": 0},
    },
}
_FILES = {"type": "array", "minItems": 1, "maxItems": 5_000, "items": _ENTRY}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {"type": "object", "required": ["files"], "properties": {"files": _FILES}},
                "example": _EXAMPLE,
            },
            TEXT: {"schema": {"type": "string"}, "example": "2024/orders.csv\n2024/returns.csv\n"},
        },
    }
}


class Rights(Protocol):
    """The pipes that a token may use."""

    def allows(self, pipe: str) -> bool:
        """Whether the token may use the pipe."""

    def require(self, pipe: str) -> None:
        """Raises PipeForbidden unless the token may use the pipe."""


class Host(Protocol):
    """The service that has these routes, as it describes itself."""

    @property
    def session(self) -> SparkSession:
        """The session in which tables of files are read and written."""

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the storage."""

    @property
    def rights(self) -> Callable[[str | None], Rights]:
        """The rights of an Authorization header. Raises IngestUnauthenticated."""

    @property
    def body(self) -> Callable[[Request], Awaitable[bytes]]:
        """The body of a request, bounded and without its compression. Raises BodyTooLarge, BodyUnreadable."""

    @property
    def pipes_file(self) -> FilePath:
        """A file of `ServedPipes`."""


class Problem(BaseModel):
    """An error of a request on a pipe."""

    error: str
    message: str


PipeName = Annotated[str, Path(description="The pipe's name, in any case unless it is in double quotes")]
RequestId = Annotated[
    str | None,
    Query(alias="requestId", description="Comes back with the answer", json_schema_extra={"maxLength": _LONGEST_ID}),
]
_TIME = {"format": "date-time"}
Start = Annotated[
    str | None, Query(alias="startTimeInclusive", description="ISO 8601; required", json_schema_extra=_TIME)
]
End = Annotated[
    str | None, Query(alias="endTimeExclusive", description="ISO 8601; now by default", json_schema_extra=_TIME)
]
_PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 413, 429, 503)}


class PipeRoutes:
    """The routes, and the files that they have taken. `close` stores all of them."""

    def __init__(self, router: APIRouter, desk: FilesDesk) -> None:
        self.router = router
        self._desk = desk

    def close(self) -> None:
        """Store the files that wait, and take no more."""
        self._desk.close()


def pipe_routes(host: Host, *, most_waiting: int = 100_000, clock: Callable[[], datetime] = utc_now) -> PipeRoutes:
    """The routes of pipes. Each needs a bearer token, and one for its pipe."""
    known, desk = (
        KnownPipes(host.pipes_file),
        FilesDesk(host.session, host.options, most_waiting=most_waiting, clock=clock),
    )

    def guard(request: Request, pipe: PipeName, authorization: Annotated[str | None, Header()] = None) -> None:
        rights = host.rights(authorization)
        rights.require(pipe)
        request.state.pipe = known.find(pipe, rights.allows)

    router = APIRouter(prefix="/v1/data/pipes/{pipe}", dependencies=[Depends(guard)], responses=_PROBLEMS)
    _add_insert_files(router, host, desk)
    _add_reports(router, PipeReports(host.session, host.options, clock), clock)
    return PipeRoutes(router, desk)


def _add_insert_files(router: APIRouter, host: Host, desk: FilesDesk) -> None:
    @router.post(
        "/insertFiles",
        summary="Put files into the pipe's queue",
        openapi_extra=_BODY,
        response_model_exclude_none=True,
    )
    async def insert_files(request: Request, pipe: PipeName, request_id: RequestId = None) -> FilesInserted:
        """The answer comes once the names are stored. The next run of the pipe loads the files, each once."""
        identity = _request_id(request_id)
        files = files_of_body(await host.body(request), request.headers.get("content-type"))
        meant, unmatched = await run_in_threadpool(_meant, request.state.pipe, files)
        if meant:
            await asyncio.wrap_future(desk.put(request.state.pipe, meant))
        return FilesInserted(request_id=identity, unmatched_pattern_first_n_files=unmatched[:_SHOWN_UNMATCHED] or None)


def _add_reports(router: APIRouter, reports: PipeReports, clock: Callable[[], datetime]) -> None:
    places = BoundedSemaphore(_REPORTS_AT_ONCE)

    @router.get("/insertReport", summary="The loads of the last ten minutes", response_model_exclude_none=True)
    def insert_report(
        request: Request,
        pipe: PipeName,
        request_id: RequestId = None,
        begin_mark: Annotated[str | None, Query(alias="beginMark", description="nextBeginMark of a report")] = None,
    ) -> InsertReport:
        _request_id(request_id)
        begin = mark_of(begin_mark)
        with _place(places, request.state.pipe):
            return InsertReport.of(request.state.pipe.name, reports.recent(request.state.pipe, begin))

    @router.get("/loadHistoryScan", summary="The loads between two times", response_model_exclude_none=True)
    def load_history_scan(
        request: Request,
        pipe: PipeName,
        request_id: RequestId = None,
        start: Start = None,
        end: End = None,
    ) -> LoadHistory:
        _request_id(request_id)
        since = _time("startTimeInclusive", start)
        until = clock() if end is None else _time("endTimeExclusive", end)
        with _place(places, request.state.pipe):
            found = reports.span(request.state.pipe, since, until)
            return LoadHistory.of(request.state.pipe.name, since, until, found)


def _meant(pipe: ServedPipe, files: Mapping[str, int]) -> tuple[dict[str, int], list[str]]:
    """The files below the pipe's location, and the names that its pattern leaves out. Raises PipeStalled."""
    if pipe.problem is not None:
        raise PipeStalled(pipe=pipe.name, state=pipe.state, problem=pipe.problem)
    only, meant, unmatched = FileFilter(regex=pipe.pattern), {}, []
    for name, size in files.items():
        whole = name_below(pipe.prefix, name)
        if only.accepts(whole):
            meant[whole] = size
        else:
            unmatched.append(name)
    return meant, unmatched


@contextmanager
def _place(places: BoundedSemaphore, pipe: ServedPipe) -> Iterator[None]:
    """One of the places for reports. Raises PipeBusy if there is none."""
    if not places.acquire(blocking=False):
        problem = f"{_REPORTS_AT_ONCE} reports are being read"
        raise PipeBusy(pipe=pipe.name, problem=problem, seconds=_SECONDS_TO_WAIT)
    try:
        yield
    finally:
        places.release()


def _request_id(given: str | None) -> str:
    if not given:
        return str(uuid.uuid4())
    if len(given) > _LONGEST_ID:
        problem = f"it has at most {_LONGEST_ID:,} characters"
        raise InvalidArgument(argument="requestId", value=given[:100], problem=problem)
    return given


def _time(argument: str, text: str | None) -> datetime:
    try:
        found = datetime.fromisoformat(text or "")
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        problem = "it must be a time in ISO 8601, such as 2026-03-01T12:00:00Z"
        raise InvalidArgument(argument=argument, value=(text or "")[:100], problem=problem) from None
