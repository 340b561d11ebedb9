"""A look at a source database for the page: in few threads of its own, and for a bounded time."""

from __future__ import annotations

import asyncio
import logging

from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import HTTPException

from tidemark.control.cursors import Part
from tidemark.errors import TidemarkError
from tidemark.hooks.replication import discovered_source
from tidemark.plugins.monitor.source_answers import SourceAnswer, source_answer
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["SourceReader"]

PATIENCE = 30.0  # seconds; a source is given 15 of them to let somebody in
AT_ONCE, OF_ONE_SOURCE = 4, 2

log = logging.getLogger(__name__)


class SourceReader:
    """A source that hangs keeps two threads, and no reader for longer than `patience` seconds."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._threads = OwnThreads("tidemark-monitor-source", most=AT_ONCE, each=OF_ONE_SOURCE)
        self._patience = patience

    async def look(self, conn_id: str, *, search: str, part: Part) -> SourceAnswer:
        """The tables of the database at that connection. Raises HTTPException: 404 for a missing connection, 503 if the
        source cannot be read or has not answered in time.
        """
        work = self._threads.submit(lambda: discovered_source(conn_id), about=(conn_id,))
        try:
            found = await asyncio.wait_for(asyncio.wrap_future(work), self._patience)
        except TimeoutError as error:
            log.error("The source at connection %s has not answered for %s s", conn_id, self._patience)
            raise HTTPException(503, f"The source has not answered for {self._patience:g} s.") from error
        except AirflowNotFoundException as error:
            raise HTTPException(404, f"The connection {conn_id} does not exist.") from error
        except TidemarkError as error:
            log.warning("The source at connection %s cannot be shown: %s", conn_id, error)
            raise HTTPException(503, f"{type(error).__name__}: {error}") from error
        return source_answer(conn_id, found, search=search, part=part)
