"""A control store or a lake that hangs takes nothing of Airflow's with it: 60 readers, a real API server."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psycopg
import pytest
import requests

from tests.airflow.api_server import ApiServer, api_server
from tests.airflow.hanging import silent_server, stopped
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.postgresql import PASSWORD, USER, PostgresServer, postgresql_or_skip
from tidemark.control.store import ControlStore
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.worker.streams import create_stream

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]

READERS = 60
PATIENCE = 60  # seconds after which something hangs
AIRFLOWS_OWN = ("/api/v2/monitor/health", "/execution/health")  # the one for people, the one for running tasks
LATER = 2.0  # seconds by which they may usually answer later than a server of which nothing hangs
PAGES = ("streams", "stream?name=orders", "replications", "replication?name=shop")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """One of its own: it is stopped."""
    with postgresql_or_skip() as server:
        yield server


@pytest.fixture(scope="module")
def silent() -> Iterator[int]:
    with silent_server() as port:
        yield port


@pytest.fixture(scope="module")
def server(
    airflow_home: Path, database: PostgresServer, silent: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """With a connection for each thing that hangs, and one that is well."""
    root = tmp_path_factory.mktemp("hangs")
    well = SyntheticTable(root / "orders")
    lake = [TableRef(f"shop.t{number}", f"s3://lake/t{number}", f"id{number}") for number in range(20)]
    here = TableRef("shop.orders", well.uri, well.table_id)
    behind = {"endpoint_url": f"http://127.0.0.1:{silent}", "key": "k", "secret": "s"}
    connections = {
        "well": {"control_store": _store(f"sqlite:///{root}/well.db", here)},
        "database": {"control_store": _store(database.url(database.new_database()), here)},
        "silent": {"control_store": f"postgresql+psycopg://tidemark:x@127.0.0.1:{silent}/tidemark"},
        "lake": {"control_store": _store(f"sqlite:///{root}/lake.db", *lake), "storage_options": behind},
    }
    environment = {
        "AIRFLOW__TIDEMARK__MONITOR_CONN_IDS": ",".join(connections),
        **{
            f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": "tidemark", "extra": extra})
            for name, extra in connections.items()
        },
    }
    with api_server(root, environment) as running:
        yield running


@pytest.fixture(scope="module")
def ask(server: ApiServer) -> Callable[[str], requests.Response]:
    """As a viewer who is logged in."""
    said = requests.post(
        f"{server.url}/auth/token", json={"username": "viewer", "password": "viewer-password"}, timeout=PATIENCE
    ).json()
    headers = {"Authorization": f"Bearer {said['access_token']}"}
    return lambda path: requests.get(f"{server.url}{path}", headers=headers, timeout=PATIENCE)


@pytest.fixture(scope="module")
def baseline(ask: Callable[[str], requests.Response]) -> float:
    """The usual answer of Airflow's own routes while 60 readers at once ask for what is well."""
    return median(_beside_60(ask, "well")[1])


def _store(url: str, *tables: TableRef) -> str:
    """A store with a stream on each of the tables, the first of which is `orders`."""
    store = ControlStore(url, clock=lambda: datetime.now(UTC))
    store.migrate()
    for number, table in enumerate(tables):
        name = f"orders{number or ''}"
        create_stream(store, name=name, source=table, mode=StreamMode.STANDARD, at_version=0, who="ana")
    return url


@contextmanager
def locked(server: PostgresServer) -> Iterator[None]:
    """Nobody can read streams or replications meanwhile."""
    (name,) = (str(row[0]) for row in server.sql("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'"))
    with psycopg.connect(host="127.0.0.1", port=server.port, user=USER, password=PASSWORD, dbname=name) as holder:
        holder.execute("LOCK TABLE tidemark_stream, tidemark_replication IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.parametrize("hanging", [locked, stopped])
def test_a_store_that_hangs_takes_nothing_of_airflows_with_it(
    ask: Callable[[str], requests.Response],
    database: PostgresServer,
    baseline: float,
    hanging: Callable[[PostgresServer], AbstractContextManager[None]],
) -> None:
    _until(lambda: ask("/tidemark/api/v1/streams?connection=database").status_code == 200)
    with hanging(database):
        answers = _asked_by_60(ask, "database", baseline)
        assert set(answers) <= {503}, answers
        assert median(_longest_of_airflows_own(ask) for _ in range(3)) <= baseline + LATER
        assert ask("/tidemark/api/v1/streams?connection=well").json()["total"] == 1
    _until(lambda: ask("/tidemark/api/v1/streams?connection=database").status_code == 200)
    assert ask("/tidemark/api/v1/streams?connection=database&wait=10").json()["streams"][0]["lag"]["state"] == "known"


def test_a_server_that_never_answers_takes_nothing_of_airflows_with_it(
    ask: Callable[[str], requests.Response], baseline: float
) -> None:
    answers = _asked_by_60(ask, "silent", baseline)
    assert set(answers) <= {503}, answers
    assert "does not answer" in ask("/tidemark/api/v1/streams?connection=silent").json()["detail"]


def test_a_lake_that_hangs_takes_nothing_of_airflows_with_it(
    ask: Callable[[str], requests.Response], baseline: float
) -> None:
    answers = _asked_by_60(ask, "lake", baseline)
    assert set(answers) <= {200, 404, 503}, answers
    assert answers[200]
    streams = ask("/tidemark/api/v1/streams?connection=lake&wait=0.1").json()["streams"]
    assert {one["lag"]["state"] for one in streams} == {"waiting"}
    assert (
        ask("/tidemark/api/v1/stream?connection=well&name=orders&wait=10").json()["stream"]["lag"]["state"] == "known"
    )


def _asked_by_60(ask: Callable[[str], requests.Response], connection: str, baseline: float) -> Counter[int]:
    """The status codes that 60 readers at once were answered, in two rounds; meanwhile Airflow's own routes answer as
    soon as before. The median is compared: a machine that stands still for a moment delays one answer, threads that
    hang delay each.
    """
    found: Counter[int] = Counter()
    for _ in range(2):
        codes, seconds = _beside_60(ask, connection)
        found.update(codes)
        assert median(seconds) <= baseline + LATER, seconds
    return found


def _beside_60(ask: Callable[[str], requests.Response], connection: str) -> tuple[list[int], list[float]]:
    """The status codes of 60 readers, and the seconds of each answer of Airflow's own meanwhile."""
    took = []
    with ThreadPoolExecutor(READERS) as readers:
        asked = [readers.submit(ask, _page(number, connection)) for number in range(READERS)]
        while not all(one.done() for one in asked):
            took.append(_longest_of_airflows_own(ask))
    return [_status(one) for one in asked], took


def _longest_of_airflows_own(ask: Callable[[str], requests.Response]) -> float:
    """The seconds that the slower of Airflow's own routes took."""
    took = []
    for route in AIRFLOWS_OWN:
        begun = time.monotonic()
        assert ask(route).status_code == 200
        took.append(time.monotonic() - begun)
    return max(took)


def _page(number: int, connection: str) -> str:
    page = PAGES[number % len(PAGES)]
    return f"/tidemark/api/v1/{page}{'&' if '?' in page else '?'}connection={connection}"


def _status(asked: Future[requests.Response]) -> int:
    answer = asked.result()
    assert answer.headers["content-security-policy"]
    return answer.status_code


def _until(seen: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.2)
