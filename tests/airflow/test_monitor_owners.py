"""Names of persons and their reasons are, on every route, for those who may read the DAG that owns the object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from tests.airflow.monitor_app import Caller, another_app
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.monitored_replications import MonitoredReplications
from tidemark.control.schema import acts, objects
from tidemark.control.store import ControlStore
from tidemark.plugins.monitor.owned import OF_OTHERS
from tidemark.streams.worker.streams import advance_stream

pytestmark = pytest.mark.airflow

OTHER = "not_for_all"  # a DAG that nobody may read


def owned(store: ControlStore, name: str, owner: str | None) -> None:
    store.write(lambda c: c.execute(objects.update().where(objects.c.name == name).values(owner_dag=owner)))


@pytest.fixture
def store(tmp_path: Path, use: Callable[[str], None]) -> ControlStore:
    """Streams that `eve` moved, and replications that `ana` paused; each belongs to a DAG or to nobody."""
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db")
    made.store.migrate()
    for name in ("mine", "theirs", "free"):
        made._stream(name)
        made._commit(name, times=1)
        advance_stream(made.store, name, 1, "eve", f"the reason of {name}")
    MonitoredReplications(tmp_path / "replicated", made.url).fill()
    for name, owner in (("mine", DAG), ("theirs", OTHER), ("free", None), ("shop", DAG), ("crm", DAG)):
        owned(made.store, name, owner)
    use(made.url)
    return made.store


def routes(stream: str) -> list[tuple[str, dict[str, str]]]:
    return [
        ("/api/v1/stream", {"name": stream}),
        ("/api/v1/history", {"kind": "stream", "name": stream, "part": "moves"}),
    ]


@pytest.mark.parametrize(("name", "told"), [("mine", True), ("free", True), ("theirs", False)])
def test_who_moved_a_stream_and_why_goes_by_the_dag_that_owns_it(
    app: FastAPI, store: ControlStore, name: str, told: bool
) -> None:
    ask = Caller(another_app())
    for route, asked in routes(name):
        text = ask(route, **asked).text
        assert ("eve" in text, f"the reason of {name}" in text, OF_OTHERS in text) == (told, told, not told), route
    assert told or "eve" not in ask("/api/v1/streams", search=name).text


@pytest.mark.parametrize(("owner", "told"), [(DAG, True), (None, True), (OTHER, False)])
def test_who_moved_a_replication_and_why_goes_by_the_dag_that_owns_it(
    app: FastAPI, store: ControlStore, owner: str | None, told: bool
) -> None:
    owned(store, "crm", owner)
    ask = Caller(another_app())
    for route, asked in (
        ("/api/v1/replication", {"name": "crm"}),
        ("/api/v1/history", {"kind": "replication", "name": "crm", "part": "moves"}),
    ):
        text = ask(route, **asked).text
        assert ("the CRM moves" in text, '"ana"' in text, OF_OTHERS in text) == (told, told, not told), route


def test_a_move_of_a_table_goes_by_the_owner_of_the_table_too(app: FastAPI, store: ControlStore) -> None:
    ask = Caller(another_app())
    owned(store, "shop/shop.customers", OTHER)
    moves = ask("/api/v1/replication", name="shop").json()["moves"]
    hidden = {one["object"] for one in moves if one["why"] == OF_OTHERS}
    points = ask("/api/v1/history", kind="replication", name="shop", part="moves").json()["parts"][0]["points"]
    assert {one["object"] for one in points if one["why"] == OF_OTHERS} == hidden == {"shop.customers"}


def test_acts_go_by_the_same_rule(app: FastAPI, store: ControlStore) -> None:
    of = {row.name: row for row in store.read(lambda c: c.execute(sa.select(objects)).all())}
    kept = {"kind": "stream", "act": "advance", "who": "eve", "revision": "{}"}
    rows = [
        {**kept, "uid": of[name].uid, "name": name, "why": f"act on {name}", "done_at": of[name].since}
        for name in ("mine", "theirs", "free")
    ]
    store.write(lambda c: c.execute(acts.insert(), rows))
    told = {one["name"]: one["why"] for one in Caller(another_app())("/api/v1/acts").json()["acts"]}
    assert told == {"mine": "act on mine", "free": "act on free", "theirs": OF_OTHERS}
