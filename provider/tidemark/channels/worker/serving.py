"""The ingest service as a job: it runs until it is cancelled."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tidemark.channels.model.jobs import SERVE_INGEST, IngestServed, ServeIngest
from tidemark.streams.worker.runtime import Runtime, report_of

__all__ = ["run_service"]

_LONGEST = timedelta(days=3_650)


def run_service(runtime: Runtime, request: ServeIngest, *, on_stop: list[Path]) -> IngestServed:
    """Run the service to its end. `on_stop` gets the file that tells it to stop, if somebody creates it.

    Raises what ends the service otherwise: InvalidArgument, IngestUnavailable, and errors of jobs.
    """
    spec = runtime.spec(SERVE_INGEST, request, key=None, deadline=runtime.store.clock() + _LONGEST)
    on_stop.append(Path(spec.cancel_uri.removeprefix("file://")))
    return report_of(SERVE_INGEST, runtime.run(spec))
