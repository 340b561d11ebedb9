"""The monitor's app alone, mounted as Airflow mounts it, and somebody who asks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.airflow.monitored import DAG

__all__ = ["GUEST", "NOBODY", "VIEWER", "Caller", "another_app", "mounted_app", "token", "walked"]

NOBODY, GUEST, VIEWER = None, "", "viewer"


LOOKING = ("/api/v1/streams", "/api/v1/stream", "/api/v1/objects")


class Caller:
    """Asks the app as it is mounted in Airflow, as a user of some role; `NOBODY` is not logged in. It waits for logs
    unless it says otherwise.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def __call__(self, path: str, *, role: str | None = VIEWER, method: str = "GET", **asked: Any) -> Any:
        headers = {} if role is None else {"Authorization": f"Bearer {token(role)}"}
        if path in LOOKING:
            asked.setdefault("wait", 5)
        client = TestClient(self._app, raise_server_exceptions=False)
        return client.request(method, f"/tidemark{path}", params=asked, headers=headers)


def walked(ask: Caller, path: str, rows: str, **asked: Any) -> list[Any]:
    """All rows of a route, by the cursors of pages of 2. A cursor that the list has not given is refused."""
    assert ask(path, **asked, cursor="W10").status_code == 422
    found, cursor = [], {}
    while True:
        page = ask(path, **asked, limit=2, **cursor).json()
        found += page[rows]
        assert len(page[rows]) <= 2
        if page["cursor"] is None:
            assert len(found) == page["total"]
            return found
        cursor = {"cursor": page["cursor"]}


def token(role: str, name: str = "ana") -> str:
    """Of the account of that name, as Airflow gives it to who logs in."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=name, role=role))


def another_app() -> FastAPI:
    """One that has seen nothing yet, beside one that is mounted."""
    from tidemark.plugins.monitor.app import build_app

    around = FastAPI()
    around.mount("/tidemark", build_app())
    return around


@contextmanager
def mounted_app() -> Iterator[FastAPI]:
    """With Airflow's auth manager; DAG `DAG` is known to Airflow meanwhile."""
    from airflow.api_fastapi.app import init_auth_manager
    from airflow.models.dag import DagModel  # noqa: TID251 - as the API server knows it
    from airflow.models.dagbundle import DagBundleModel  # noqa: TID251
    from airflow.utils.session import create_session

    from tidemark.plugins.monitor.app import build_app

    with create_session() as session:
        session.merge(DagBundleModel(name="monitor"))
        session.flush()
        session.merge(DagModel(dag_id=DAG, bundle_name="monitor", fileloc="x.py"))
    around = FastAPI()
    around.mount("/tidemark", build_app())
    init_auth_manager(around)
    yield around
    with create_session() as session:
        session.query(DagModel).filter_by(dag_id=DAG).delete()
