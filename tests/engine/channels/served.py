"""The ingest service in this process, and writers of it over HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.app import ServiceLimits, ingest_app
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.measures import Measures
from tidemark.channels.model.grants import Grants
from tidemark.channels.planning.grants import with_grant
from tidemark.model.codec import to_json

__all__ = ["Writer", "grant", "served"]

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Writer:
    """A writer of one table with its own token."""

    http: httpx.Client
    table: str = "orders"

    def open(self, channel: str, **how: Any) -> dict[str, Any]:
        return self._good(self.http.put(f"/v1/tables/{self.table}/channels/{channel}", json=how))

    def append(self, channel: str, token: str, rows: Any, offset: str | None = None, **more: Any) -> httpx.Response:
        body = rows if isinstance(rows, bytes) else "\n".join(map(json.dumps, rows)).encode()
        query = {"continuation_token": token, **({} if offset is None else {"offset_token": offset})}
        return self.http.post(f"/v1/tables/{self.table}/channels/{channel}/rows", content=body, params=query, **more)

    def flush(self, channel: str) -> httpx.Response:
        return self.http.post(f"/v1/tables/{self.table}/channels/{channel}/flush")

    def status(self, *channels: str) -> dict[str, Any]:
        asked = {"channel_names": list(channels)}
        answer = self._good(self.http.post(f"/v1/tables/{self.table}/channel-status", json=asked))
        return dict(answer["channel_statuses"])

    def _good(self, answer: httpx.Response) -> dict[str, Any]:
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def grant(file: Path, **tokens: str) -> None:
    """The file of tokens: writer's name → `token: tables`."""
    grants = Grants()
    for name, text in tokens.items():
        token, _, tables = text.partition(": ")
        grants = with_grant(grants, name, token, tuple(tables.split()), NOW)
    file.write_text(to_json(grants))


@contextmanager
def served(
    landing: Landing,
    tokens: Path,
    *,
    all_bytes: int = 256 << 20,
    body_bytes: int = 1 << 20,
    service_bytes: int = 1 << 30,
) -> Iterator[str]:
    """The address of a service whose lag is ten minutes, so that only a flush commits."""
    limits = Limits(lag=timedelta(minutes=10), all_bytes=all_bytes, insert_patience=timedelta(0))
    engine = KernelEngine.of_session(landing.spark)
    client = IngestClient("service", engine, landing.uri, options={}, limits=limits, history=False)
    desk = IngestDesk(client, landing.records, all_bytes=service_bytes)
    measures = Measures(open_channels=lambda: desk.open_channels, buffered_bytes=client.buffered_bytes)
    app = ingest_app(desk, Access(tokens), measures, ServiceLimits(body_bytes))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        client.discard()
