"""Weak ETags: the same answer at another time is not sent again, and a different one is."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tidemark.plugins.monitor.etags import TIMES, ETags, documented, etag_of

assert HOME
NOON = datetime(2026, 11, 27, 12, 0, 0, 123456, tzinfo=UTC)
BEGAN = NOON - timedelta(minutes=5, microseconds=7)
STALE = NOON + timedelta(hours=40)


def told(now: datetime, **more: Any) -> dict[str, Any]:
    """As the routes tell it: ages and rests by the clock."""
    one = {
        "name": "orders",
        "lag_seconds": (now - BEGAN).total_seconds(),
        "hours_left": (STALE - now).total_seconds() / 3600,
    }
    return {"now": now.isoformat(), "looked_at": now.isoformat(), "streams": [{**one, **more}], "total": 1}


class World:
    def __init__(self) -> None:
        self.now, self.more, self.asked = NOON, {}, 0  # type: datetime, dict[str, Any], int
        app = FastAPI()
        app.add_middleware(ETags)

        @app.get("/api/v1/streams")
        def streams() -> dict[str, Any]:
            self.asked += 1
            return told(self.now, **self.more)

        @app.get("/api/v1/refused")
        def refused() -> None:
            raise HTTPException(403, "no")

        @app.post("/api/v1/streams")
        def act() -> dict[str, Any]:
            return told(self.now)

        @app.get("/")
        def page() -> dict[str, Any]:
            return {}

        around = FastAPI()
        around.mount("/tidemark", app)
        self.app, self.client = app, TestClient(around)

    def ask(self, known: str | None = None, path: str = "/api/v1/streams") -> Any:
        headers = {} if known is None else {"If-None-Match": known}
        return self.client.get(f"/tidemark{path}", headers=headers)


@pytest.fixture
def world() -> World:
    return World()


def test_who_has_the_answer_gets_its_times_and_no_body(world: World) -> None:
    first = world.ask()
    assert first.status_code == 200
    assert first.headers["ETag"].startswith('W/"')
    world.now = NOON + timedelta(hours=3)
    again = world.ask(first.headers["ETag"])
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert "content-type" not in again.headers
    assert json.loads(again.headers[TIMES]) == {"now": world.now.isoformat(), "looked_at": world.now.isoformat()}
    assert world.asked == 2  # the route is asked, with its checks


@pytest.mark.parametrize(
    "more", [{"name": "payments"}, {"lag_seconds": 0.0}, {"lag_seconds": 8.0}, {"hours_left": 0.0}]
)
def test_another_answer_has_another_tag(world: World, more: dict[str, Any]) -> None:
    first = world.ask()
    world.more = more
    again = world.ask(first.headers["ETag"])
    assert again.status_code == 200
    assert again.headers["ETag"] != first.headers["ETag"]
    assert again.json() == told(world.now, **more)


def test_the_clock_alone_never_changes_a_tag() -> None:
    tags = {etag_of(told(NOON + timedelta(seconds=17 * step, microseconds=389 * step))) for step in range(2000)}
    assert len(tags) == 1


def test_points_of_a_history_are_of_their_own_time() -> None:
    points = [{"at": BEGAN.isoformat(), "lag_seconds": 7.5}]
    tags = {etag_of({**told(NOON + timedelta(hours=step)), "points": points}) for step in range(3)}
    assert len(tags) == 1
    assert etag_of({**told(NOON), "points": [{**points[0], "lag_seconds": 8.5}]}) not in tags


@pytest.mark.parametrize(
    ("known", "status"),
    [("*", 304), ('"x", {tag}', 304), ("{strong}", 304), ('W/"x"', 200), ("", 200), ("{half}", 200)],
)
def test_one_of_several_tags_is_enough(world: World, known: str, status: int) -> None:
    tag = world.ask().headers["ETag"]
    asked = known.format(tag=tag, strong=tag.removeprefix("W/"), half=tag[:-2])
    assert world.ask(asked).status_code == status


def test_refusals_acts_and_the_page_itself_have_none(world: World) -> None:
    refused = world.ask("*", "/api/v1/refused")
    assert (refused.status_code, refused.json()) == (403, {"detail": "no"})
    assert "ETag" not in refused.headers
    assert "ETag" not in world.client.post("/tidemark/api/v1/streams", headers={"If-None-Match": "*"}).headers
    assert world.ask("*", "/").status_code == 200


def test_the_document_has_header_and_answer_of_each_route_that_is_read(world: World) -> None:
    path = documented(documented(world.app.openapi()))["paths"]["/api/v1/streams"]
    assert "304" in path["get"]["responses"]
    assert [one["name"] for one in path["get"]["parameters"]] == ["If-None-Match"]
    assert "304" not in path["post"]["responses"]
