"""ETags of every route of the monitor: nobody gets 304 who may not read, and no route is without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.airflow.monitor_app import GUEST, LOOKING, VIEWER, another_app, token
from tests.airflow.needing import Needing
from tests.until import wait_until
from tidemark.streams.worker.streams import advance_stream

pytestmark = pytest.mark.airflow

ALONE = ("/api/v1/overview", "/api/v1/acts", "/api/v1/objects", "/api/v1/streams", "/api/v1/replications")
ASKED = {"/api/v1/stream": {"name": "payments"}, "/api/v1/replication": {"name": "shop"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("needing")).fill()


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None]) -> Callable[..., Any]:
    use(world.url)
    client = TestClient(another_app(), raise_server_exceptions=False)

    def asked(path: str, *, known: str | None = None, role: str | None = VIEWER) -> Any:
        headers = {} if role is None else {"Authorization": f"Bearer {token(role)}"}
        named = {} if known is None else {"If-None-Match": known}
        wait = {"wait": 5} if path in LOOKING else {}
        return client.get(f"/tidemark{path}", params={**ASKED.get(path, {}), **wait}, headers={**headers, **named})

    return asked


def document(ask: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = ask("/api/v1/openapi.json").json()
    return found


def test_each_route_that_is_read_answers_304_to_who_has_its_answer(ask: Callable[..., Any]) -> None:
    def is_known() -> bool:
        found = ask("/api/v1/overview").json()
        return found["looked_at"] is not None and all(one["dependents"] is not None for one in found["needs"])

    wait_until(is_known)
    for path in (*ALONE, *ASKED, "/api/v1/openapi.json"):
        ask(path)  # logs are asked meanwhile
        first = ask(path)
        again = ask(path, known=first.headers["ETag"])
        assert (first.status_code, again.status_code, again.content) == (200, 304, b""), path
        assert again.headers["Cache-Control"] == "private, no-cache"
        assert again.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(("role", "status"), [(None, 401), (GUEST, 403)])
def test_who_may_not_read_gets_no_304(ask: Callable[..., Any], role: str | None, status: int) -> None:
    for path in (*ALONE, *ASKED):
        assert ask(path, known="*", role=role).status_code == status, path


def test_what_has_changed_is_sent(ask: Callable[..., Any], world: Needing) -> None:
    ask("/api/v1/stream")
    first = ask("/api/v1/stream")
    advance_stream(world.store, "payments", first.json()["stream"]["offset"], "ana", "a look")
    again = ask("/api/v1/stream", known=first.headers["ETag"])
    assert again.status_code == 200
    assert again.json()["moves"][0]["why"] == "a look"


def test_the_document_has_304_and_the_header_of_every_route_that_is_read(ask: Callable[..., Any]) -> None:
    for path, methods in document(ask)["paths"].items():
        if "get" in methods:
            assert "304" in methods["get"]["responses"], path
            assert "If-None-Match" in [one["name"] for one in methods["get"]["parameters"]]
