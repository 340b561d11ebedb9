"""Further routes of the ingest service, which other subjects add by name: this one imports none of them."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fastapi import APIRouter, Request

from tidemark.channels.driver.service.access import PipeRights
from tidemark.channels.driver.service.bodies import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FURTHER", "FurtherRoutes", "Host", "further_routes", "read_body"]

FURTHER = ("pipes.driver.service.routes:pipe_routes",)
"""Functions below `tidemark`, each called with the `Host`. They return `FurtherRoutes`."""


@dataclass(frozen=True)
class Host:
    """The parts of the service that further routes use. `rights`: of a request's Authorization header on pipes; it
    raises IngestUnauthenticated. `body`: the body of a request, bounded and decompressed. `pipes_file`: of the pipes.
    """

    session: SparkSession
    options: Mapping[str, str] = field(repr=False)
    rights: Callable[[str | None], PipeRights]
    body: Callable[[Request], Awaitable[bytes]]
    pipes_file: Path


class FurtherRoutes(Protocol):
    """The routes of a subject."""

    @property
    def router(self) -> APIRouter:
        """The routes."""

    def close(self) -> None:
        """Finish what requests have begun, once no request comes any more."""


def further_routes(host: Host) -> tuple[FurtherRoutes, ...]:
    """The routes of all subjects."""
    return tuple(_named(entry)(host) for entry in FURTHER)


async def read_body(request: Request, limit: int) -> bytes:
    """The body of a request without its compression. Raises BodyTooLarge and BodyUnreadable."""
    return plain(await request.body(), request.headers.get("content-encoding"), limit)


def _named(entry: str) -> Any:
    module, _, function = entry.partition(":")
    return getattr(importlib.import_module(f"tidemark.{module}"), function)
