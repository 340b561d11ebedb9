"""The app behind the page: every route asks Airflow first, and none but the route of acts changes anything."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from tidemark import __version__
from tidemark.control.object_list import ObjectOrder, ObjectsWish
from tidemark.errors import (
    CursorInvalid,
    InvalidArgument,
    ReplicationNotFound,
    StoreError,
    StoreNotMigrated,
    StoreRefused,
    StoreTooNew,
    StreamNotFound,
    TidemarkError,
)
from tidemark.model.statements import TransactionKey
from tidemark.plugins.monitor import reading, replication_reading
from tidemark.plugins.monitor.access import ReadableDags, require_reader, require_source_reader
from tidemark.plugins.monitor.act_routes import add_acts
from tidemark.plugins.monitor.answers import StreamDetails, StreamsAnswer
from tidemark.plugins.monitor.asking import API, NO_NUL, AskedPart, Connection, Kind, Text, gate_to, refusals
from tidemark.plugins.monitor.etags import ETags, documented
from tidemark.plugins.monitor.gate import Gates
from tidemark.plugins.monitor.history_routes import add_history
from tidemark.plugins.monitor.kept_graphs import KeptGraphs
from tidemark.plugins.monitor.lineage_routes import add_lineage
from tidemark.plugins.monitor.object_answers import AnyObjectsAnswer, ObjectsPart, objects_answer
from tidemark.plugins.monitor.overview_routes import add_overview
from tidemark.plugins.monitor.replication_answers import ReplicationDetails, ReplicationsAnswer
from tidemark.plugins.monitor.run_routes import add_runs
from tidemark.plugins.monitor.security import SECURITY, SecurityHeaders
from tidemark.plugins.monitor.source_answers import SourceAnswer
from tidemark.plugins.monitor.source_reading import SourceReader
from tidemark.streams.store.overview import SortBy

__all__ = ["build_app"]

PAGE = Path(__file__).parent / "page"

_REFUSALS = {
    401: 'You are not logged in. <a href="../">Log in to Airflow</a> and open this page again.',
    403: "You lack the right to read assets, so you may not see streams or replications. "
    "Ask your Airflow administrator.",
}
_REFUSED = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    "<title>Tidemark</title><h1>Tidemark</h1><p>{words}</p></html>"
)

Part = Literal[
    "monitor.js",
    "address.js",
    "answers.js",
    "elements.js",
    "header.js",
    "lists.js",
    "streams.js",
    "details.js",
    "replications.js",
    "sources.js",
    "objects.js",
    "overview.js",
    "acts.js",
    "act_fields.js",
    "copying.js",
    "charts.js",
    "history.js",
    "trees.js",
    "lineage.js",
    "runs.js",
    "monitor.css",
    "lineage.css",
]
Vendored = Literal[
    "d3-array.mjs",
    "d3-color.mjs",
    "d3-format.mjs",
    "d3-interpolate.mjs",
    "d3-path.mjs",
    "d3-scale.mjs",
    "d3-shape.mjs",
    "d3-time-format.mjs",
    "d3-time.mjs",
    "dagre.mjs",
]
Name = Annotated[
    str, Query(max_length=500, pattern=NO_NUL, description="Name of the stream. Empty: that of the transaction.")
]
Wait = Annotated[
    float, Query(ge=0, le=10, description="How long a script waits for looks at logs, in seconds. The page does not.")
]
SourceName = Annotated[str, InPath(max_length=250, pattern=NO_NUL, description="An Airflow connection of a database.")]

_STATE = (
    "A state in the control store, such as `delivering`, or a severity, for which findings of looks count. States that "
    "only a log tells, such as `stale`, find nothing."
)

log = logging.getLogger(__name__)


def build_app(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> FastAPI:
    """The app, to be mounted. Every route answers 401 without a login, and 403 without the right to read assets. It
    answers 503 with words if the control store cannot be read.
    """
    gates = Gates()
    app = FastAPI(
        title="Tidemark",
        description="Streams, replications and all other objects: states, problems, and acts.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # served below, behind the same check
        dependencies=[Depends(require_reader)],
    )
    app.add_middleware(ETags)
    app.add_middleware(SecurityHeaders)
    for kind in (TidemarkError, AirflowNotFoundException, SQLAlchemyError, OSError):
        app.add_exception_handler(kind, _in_words)
    app.add_exception_handler(Exception, _in_general_words)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    _add_page(app)
    _add_streams(app, gates, clock)
    _add_replications(app, gates, clock)
    _add_sources(app)
    _add_objects(app, gates, clock)
    graphs = KeptGraphs()
    add_overview(app, gates, graphs, clock)
    add_lineage(app, gates, graphs, clock)
    add_runs(app, gates, clock)
    add_acts(app, gates, clock)
    add_history(app, gates, clock)
    return app


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    @app.get("/page/{file}", include_in_schema=False)
    async def part(file: Part) -> FileResponse:
        kind = "text/css" if file.endswith(".css") else "text/javascript"
        return FileResponse(PAGE / file, media_type=kind)

    @app.get("/page/vendor/{file}", include_in_schema=False)
    async def vendored(file: Vendored) -> FileResponse:
        return FileResponse(PAGE / "vendor" / file, media_type="text/javascript")

    @app.get(f"{API}/openapi.json", include_in_schema=False)
    async def schema(request: Request) -> JSONResponse:
        at = [{"url": request.scope.get("root_path") or "/"}]  # where Airflow has mounted the app
        return JSONResponse({**documented(request.app.openapi()), "servers": at})


def _add_streams(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    @app.get(f"{API}/streams", responses=refusals("stream"))
    async def streams(
        readable: ReadableDags,
        part: AskedPart,
        connection: Connection = None,
        search: Text = "",
        held: bool = False,
        sort: SortBy = SortBy.NAME,
        descending: bool = False,
        wait: Wait = 0.0,
    ) -> StreamsAnswer:
        """A page of streams whose name, source or path holds `search`; `held`: those with an open window alone."""
        wish = reading.PageWish(search, held, sort, descending, part)
        gate = gate_to(gates, connection)
        return await reading.streams_page(gate, wish, patience=wait, now=clock(), readable=readable)

    @app.get(f"{API}/stream", responses=refusals("stream"))
    async def stream(
        readable: ReadableDags,
        name: Name = "",
        connection: Connection = None,
        dag_id: Text = "",
        run_id: Text = "",
        task_id: Text = "",
        map_index: Annotated[int, Query(ge=-1, le=1_000_000)] = -1,
        wait: Wait = 0.0,
    ) -> StreamDetails:
        """A stream with its newest transactions and moves, and the transaction of the run that is named, if any."""
        key = TransactionKey(dag_id, run_id, task_id, map_index) if dag_id in readable else None
        gate = gate_to(gates, connection)
        return await reading.details(gate, name, patience=wait, now=clock(), readable=readable, asked_for=key)


def _add_replications(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    @app.get(f"{API}/replications", responses=refusals("connection"))
    async def replications(
        readable: ReadableDags, part: AskedPart, connection: Connection = None
    ) -> ReplicationsAnswer:
        """A page of replications: their states, lags and alerts, and how many of their objects are behind."""
        return await gate_to(gates, connection).ask(
            lambda monitored: replication_reading.replications_answer(monitored, part, now=clock(), readable=readable)
        )

    @app.get(f"{API}/replication", responses=refusals("replication"))
    async def replication(
        readable: ReadableDags,
        name: Annotated[Text, Query(description="Name of the replication.")],
        part: AskedPart,
        connection: Connection = None,
        search: Text = "",
    ) -> ReplicationDetails:
        """A replication with a page of its objects whose name or target holds `search`, the worst first, and its
        newest moves.
        """
        wish = replication_reading.ObjectsWish(search, part)
        return await gate_to(gates, connection).ask(
            lambda monitored: replication_reading.replication_details(
                monitored, name, wish, now=clock(), readable=readable
            )
        )


def _add_sources(app: FastAPI) -> None:
    reader = SourceReader()

    @app.get(
        API + "/source/{connection_id}", responses=refusals("connection"), dependencies=[Depends(require_source_reader)]
    )
    async def source(connection_id: SourceName, part: AskedPart, search: Text = "") -> SourceAnswer:
        """A page of the tables of a source database whose names hold `search`, and which can be replicated. That needs
        the right to read the connection, too.
        """
        return await reader.look(connection_id, search=search, part=part)


def _add_objects(app: FastAPI, gates: Gates, clock: Callable[[], datetime]) -> None:
    @app.get(f"{API}/objects", responses=refusals("connection"))
    async def objects(
        readable: ReadableDags,
        part: AskedPart,
        connection: Connection = None,
        kind: Kind = None,
        state: Annotated[Text, Query(description=_STATE)] = "",
        problems: bool = False,
        search: Text = "",
        sort: ObjectOrder = ObjectOrder.STATE,
        descending: bool = False,
        wait: Wait = 0.0,
    ) -> AnyObjectsAnswer:
        """A page of the objects of every kind, the worst that the store knows first: state, lag, owner, problem."""
        wish = ObjectsWish(kind, state or None, problems, search)
        asked = ObjectsPart(wish, sort, descending, part)
        gate = gate_to(gates, connection)
        return await objects_answer(gate, asked, patience=wait, now=clock(), readable=readable)


async def _in_words(_: Request, error: Exception) -> JSONResponse:
    """A reader of the page need not know where the store is: only the API server's log says that."""
    if isinstance(error, StreamNotFound | ReplicationNotFound):
        return JSONResponse({"detail": str(error)}, status_code=404)
    if isinstance(error, CursorInvalid):
        return JSONResponse({"detail": str(error)}, status_code=422)
    log.error("The page cannot be shown: %s", error)
    return JSONResponse({"detail": _words(error)}, status_code=503)


async def _in_general_words(_: Request, error: Exception) -> JSONResponse:
    """A fault of ours: only the API server's log says what it is, with its traceback."""
    return JSONResponse(
        {"detail": f"{type(error).__name__}: the API server's log has the details."}, 500, headers=SECURITY
    )


async def _refused(request: Request, error: Exception) -> Response:
    """A reader of the page gets words, a program gets Airflow's own answer; the status is the same."""
    assert isinstance(error, HTTPException)
    words = _REFUSALS.get(error.status_code)
    if words is None or "text/html" not in request.headers.get("accept", ""):
        return await http_exception_handler(request, error)
    return HTMLResponse(_REFUSED.format(words=words), status_code=error.status_code)


async def _invalid(_: Request, error: Exception) -> Response:
    """Each fault of a question by its place, as FastAPI has them, without the value. A value or a name may be nothing
    that UTF-8 or JSON can have.
    """
    assert isinstance(error, RequestValidationError)
    faults = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in error.errors()]
    return Response(json.dumps({"detail": faults}), 422, media_type="application/json")


def _words(error: Exception) -> str:
    if isinstance(error, StoreNotMigrated):
        return "The control store is not migrated to this release. Run: airflow tidemark db migrate"
    if isinstance(error, StoreTooNew):
        return "The control store was migrated by a newer release than the API server has. Install that release here."
    if isinstance(error, StoreRefused):
        return "The control store refuses this: check its login and its rights. The API server's log has its error."
    if isinstance(error, StoreError | SQLAlchemyError | OSError):
        return "The control store does not answer. The API server's log has its error."
    if isinstance(error, AirflowNotFoundException | InvalidArgument):
        return "The Tidemark connection is missing or cannot be used. The API server's log has the reason."
    return f"{type(error).__name__}: the API server's log has the details."
