"""The ingest service with the pipes of a desk, in this process, and a program that names files to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from tests.engine.pipes.desk import Desk
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.app import ServiceLimits, ingest_app
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.further import Host, read_body
from tidemark.channels.driver.service.measures import Measures
from tidemark.channels.model.grants import Grants
from tidemark.channels.planning.grants import with_grant
from tidemark.control.store import ControlStore
from tidemark.model.codec import to_json
from tidemark.pipes.driver.service.routes import pipe_routes
from tidemark.pipes.worker.served import served_pipes, write_pipes

__all__ = ["Program", "Serving", "app_of"]

BODY_BYTES = 1 << 20


@dataclass
class Program:
    """A program with a token of its own, and one pipe."""

    http: httpx.Client
    pipe: str = "db.p"

    def insert(self, *files: str, **how: Any) -> httpx.Response:
        body = {"files": [{"path": name} for name in files]}
        return self.http.post(f"/v1/data/pipes/{self.pipe}/insertFiles", **{"json": body, **how})

    def report(self, mark: str | None = None) -> dict[str, Any]:
        return self._good("insertReport", {} if mark is None else {"beginMark": mark})

    def history(self, start: str, end: str | None = None) -> dict[str, Any]:
        return self._good(
            "loadHistoryScan", {"startTimeInclusive": start, **({"endTimeExclusive": end} if end else {})}
        )

    def ask(self, what: str, **params: str) -> httpx.Response:
        return self.http.get(f"/v1/data/pipes/{self.pipe}/{what}", params=params)

    def _good(self, what: str, params: dict[str, str]) -> dict[str, Any]:
        answer = self.ask(what, **params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@dataclass
class Serving:
    """The service at `address`, and the file of its pipes, which `write` brings up to date."""

    desk: Desk
    directory: Path
    address: str = ""

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.json"

    @property
    def pipes(self) -> Path:
        return self.directory / "pipes.json"

    def write(self) -> bool:
        store = ControlStore(self.desk.store)
        try:
            return write_pipes(self.pipes, served_pipes(store))
        finally:
            store.close()

    def grant(self, **tokens: str) -> None:
        """The file of tokens: name → `token: pipes`."""
        grants = Grants()
        for name, text in tokens.items():
            token, _, pipes = text.partition(": ")
            grants = with_grant(grants, name, token, (), self.desk.now(), tuple(pipes.split()))
        self.tokens.write_text(to_json(grants))

    @contextmanager
    def program(self, token: str = "secret", pipe: str = "db.p") -> Iterator[Program]:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=self.address, headers=headers, timeout=120) as http:
            yield Program(http, pipe)

    @contextmanager
    def run(self, **how: Any) -> Iterator[Serving]:
        with app_of(self, **how) as app:
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
            thread = threading.Thread(target=server.run)
            thread.start()
            while not server.started:
                time.sleep(0.01)
            self.address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
            try:
                yield self
            finally:
                server.should_exit = True
                thread.join()


@contextmanager
def app_of(serving: Serving, **how: Any) -> Iterator[FastAPI]:
    """The app as the job composes it. `how`: of `pipe_routes`."""
    desk, access = serving.desk, Access(serving.tokens)
    client = IngestClient("service", KernelEngine.of_session(desk.spark), str, options={}, history=False)
    channels = IngestDesk(client, lambda _: {})
    measures = Measures(open_channels=lambda: 0, buffered_bytes=lambda: 0)
    body = partial(read_body, limit=BODY_BYTES)
    routes = pipe_routes(Host(desk.spark, {}, access.pipe_rights, body, serving.pipes), clock=desk.now, **how)
    try:
        yield ingest_app(channels, access, measures, ServiceLimits(BODY_BYTES), [routes.router])
    finally:
        routes.close()
        client.discard()
