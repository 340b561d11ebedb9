"""The SERVE_INGEST job: the ingest service in this driver, until its job is cancelled."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.engines import engine_of
from tidemark.channels.driver.keeping import Upkeeper
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.upkeep_rounds import kept_tables
from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.model.jobs import IngestServed, ServeIngest
from tidemark.channels.planning.addresses import require_safe_address
from tidemark.channels.planning.lag import lag_of
from tidemark.channels.planning.restores import records_now
from tidemark.errors import IngestUnavailable, JobCancelled, JobDeadlineExceeded, TableNotFound, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import location_of, resolve
from tidemark.model.streams import Addressing

if TYPE_CHECKING:
    import uvicorn

    from tidemark.channels.driver.service.app import ServiceLimits
    from tidemark.channels.driver.service.further import FurtherRoutes, Host

__all__ = ["serve_ingest"]

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_FOR_REQUESTS = 5


def serve_ingest(job: JobContext, request: ServeIngest) -> IngestServed:
    """Serve until the job must stop. Then take no more requests, finish the open ones, and commit all rows.

    Raises InvalidArgument, and IngestUnavailable if it cannot listen. A second run is another service: writers open
    their channels again.
    """
    require_safe_address(request)
    limits = Limits(lag=lag_of(request.max_client_lag), all_bytes=request.buffer_bytes, insert_patience=timedelta(0))
    tables = _Tables(request.lake_root, job.options)
    client = IngestClient(
        "ingest service",
        engine_of(job.session),
        tables.locate,
        options=job.options,
        locate_new=tables.locate_new,
        limits=limits,
        only_writer=request.only_writer,
        clock=utc_now,
    )
    desk = IngestDesk(client, tables.records, may_evolve=request.evolve_schema, all_bytes=request.all_buffer_bytes)
    server, further = _server(job, desk, client, request)
    thread = threading.Thread(target=server.run, name="ingest service")
    thread.start()
    with kept_tables(job, request, Upkeeper(job.session, client, job.options), desk, tables.locate):
        _wait(job, server, thread, request)
    server.should_exit = True
    thread.join()
    for routes in further:
        routes.close()
    return _drained(client)


class _Tables:
    """Tables below the lake's root, by the names that writers send."""

    def __init__(self, lake_root: str, options: Any) -> None:
        self._root, self._options = lake_root, options

    def locate(self, name: str) -> str:
        """The table's URI. A path is refused: grants are for names."""
        self._require_name(name)
        return resolve(name, self._root, self._options, origin="the lake root of the ingest service")[0]

    def locate_new(self, name: str) -> str:
        """The URI of a table that may not exist yet. A path is refused."""
        self._require_name(name)
        return location_of(name, self._root)[0]

    def _require_name(self, name: str) -> None:
        if location_of(name, self._root)[1] is not Addressing.LAKE:
            raise TableNotFound(path=name, hint="Name the table as schema.table below the lake root.")

    def records(self, name: str) -> dict[str, ChannelRecord]:
        """The committed records of the table's channels."""
        return records_now(DeltaLog.open(self.locate(name), self._options))


def _server(
    job: JobContext, desk: IngestDesk, client: IngestClient, request: ServeIngest
) -> tuple[uvicorn.Server, tuple[FurtherRoutes, ...]]:
    try:
        import uvicorn

        from tidemark.channels.driver.service.app import ServiceLimits, ingest_app
        from tidemark.channels.driver.service.further import further_routes
        from tidemark.channels.driver.service.measures import Measures
    except ImportError as error:
        remedy = "Install it: pip install 'airflow-provider-tidemark[ingest]'"
        raise IngestUnavailable(problem=f"the driver lacks {error.name}", remedy=remedy) from None
    measures = Measures(open_channels=lambda: desk.open_channels, buffered_bytes=client.buffered_bytes)
    access, limits = Access(Path(request.tokens_file)), ServiceLimits(request.body_bytes)
    further = () if request.pipes_file is None else further_routes(_host(job, access, limits, request.pipes_file))
    app = ingest_app(desk, access, measures, limits, [routes.router for routes in further])
    config = uvicorn.Config(
        app,
        host=request.host,
        port=request.port,
        ssl_certfile=request.certificate,
        ssl_keyfile=request.key,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_SECONDS_FOR_REQUESTS,
        proxy_headers=request.behind_proxy,
        server_header=False,
    )
    return uvicorn.Server(config), further


def _host(job: JobContext, access: Access, limits: ServiceLimits, pipes_file: str) -> Host:
    from tidemark.channels.driver.service.further import Host, read_body

    body = partial(read_body, limit=limits.body_bytes)
    return Host(job.session, job.options, access.pipe_rights, body, Path(pipes_file))


def _wait(job: JobContext, server: uvicorn.Server, thread: threading.Thread, request: ServeIngest) -> None:
    """Until the job must stop. Raises IngestUnavailable if the server ends by itself."""
    is_said = False
    while thread.is_alive():
        try:
            job.stop_if_due()
        except (JobCancelled, JobDeadlineExceeded):
            return
        if server.started and not is_said:
            is_said = True
            port = server.servers[0].sockets[0].getsockname()[1]
            scheme = "http" if request.certificate is None else "https"
            job.progress.say(f"ingest service at {scheme}://{request.host}:{port}")
        thread.join(_SECONDS_BETWEEN_LOOKS)
    problem = f"the service cannot listen at {request.host}:{request.port}, or has ended"
    raise IngestUnavailable(problem=problem, remedy="Choose another port, or end what listens there.")


def _drained(client: IngestClient) -> IngestServed:
    try:
        client.close()
    except TidemarkError as error:
        return IngestServed(committed=False, problem=str(error))
    return IngestServed(committed=True)
