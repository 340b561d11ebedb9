"""The monitor's app: Airflow is asked on every route, a dead lake or store is said in words, nothing is changed."""

from __future__ import annotations

import copy
import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import schemathesis
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from starlette.routing import Mount

import tidemark
from tests.airflow.monitor_app import GUEST, NOBODY, VIEWER, Caller, another_app, token, walked
from tests.airflow.monitored import DAG, Monitored
from tests.postgresql import PostgresServer
from tests.tiers import some
from tidemark.control.store import ControlStore
from tidemark.control.words import word_of
from tidemark.model.statements import TransactionKey
from tidemark.streams.store import schema

pytestmark = pytest.mark.airflow

PAGE = Path(tidemark.__file__).parent / "plugins" / "monitor" / "page"


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    root = tmp_path_factory.mktemp("monitored")
    made = Monitored(root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    return made.fill()


@pytest.fixture
def ask(app: FastAPI, monitored: Monitored, use: Callable[[str], None]) -> Caller:
    use(monitored.url)
    return Caller(app)


def ours(around: FastAPI) -> FastAPI:
    (found,) = (route.app for route in around.routes if isinstance(route, Mount) and route.path == "/tidemark")
    assert isinstance(found, FastAPI)
    return found


def routes_of(app: FastAPI) -> list[APIRoute]:
    """Every route of the mounted app; anything that is no plain route would have no check, and fails here."""
    mounted = ours(app)
    assert all(isinstance(route, APIRoute) for route in mounted.routes), mounted.routes
    return list(mounted.routes)


def example(route: APIRoute) -> str:
    return re.sub(r"\{[^}]*\}", "monitor.js", route.path)


def test_every_route_asks_who_it_is(app: FastAPI, ask: Caller) -> None:
    routes = routes_of(app)
    assert len(routes) == 17
    for route in routes:
        for method in route.methods:
            assert ask(example(route), role=NOBODY, method=method).status_code == 401, route.path
            assert ask(example(route), role=GUEST, method=method).status_code == 403, route.path


def test_every_answer_carries_the_security_headers_whatever_its_status(app: FastAPI, ask: Caller) -> None:
    answers = [ask("/"), ask("/page/monitor.js"), ask("/api/v1/streams"), ask("/api/v1/openapi.json")]
    answers += [
        ask(path, role=role) for path in ("/", "/api/v1/streams", "/page/monitor.js") for role in (NOBODY, GUEST)
    ]
    answers += [
        ask("/api/v1/stream", name="nobody"),
        ask("/nowhere"),
        ask("/page/nothing.js"),
        ask("/api/v1/streams", limit=0),
    ]
    answers += [ask("/api/v1/streams", method="POST"), ask("/api/v1/streams", connection="aws_default")]
    assert {answer.status_code for answer in answers} == {200, 401, 403, 404, 405, 422}
    for answer in answers:
        assert answer.headers["content-security-policy"].startswith("default-src 'none'"), answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_every_route_but_that_of_acts_only_reads(app: FastAPI) -> None:
    writing = [route.path for route in routes_of(app) if route.methods != {"GET"}]
    assert writing == ["/api/v1/objects/{kind}/{uid}/acts/{act}"]


def test_a_forged_or_foreign_token_is_refused(app: FastAPI, ask: Caller) -> None:
    client = TestClient(app)
    for forged in ("x", token(VIEWER)[:-4] + "AAAA"):
        answer = client.get("/tidemark/api/v1/streams", headers={"Authorization": f"Bearer {forged}"})
        assert answer.status_code in (401, 403)


def test_the_page_loads_nothing_from_elsewhere(ask: Caller) -> None:
    page = ask("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    parts = re.findall(r'(?:src|href)="(page/[^"]+)"', page.text)
    assert parts
    modules = [*PAGE.glob("*.js"), *PAGE.glob("*.css"), *PAGE.glob("vendor/*.mjs")]
    files = [f"page/{file.relative_to(PAGE).as_posix()}" for file in modules]
    assert set(parts) < set(files)
    answers = [ask(f"/{file}") for file in files]
    assert {answer.status_code for answer in answers} == {200}
    texts = [re.sub(r"(?m)(^|\s)//.*$", "", text) for text in (page.text, *(answer.text for answer in answers))]
    assert not [found for text in texts for found in re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", text)]


def test_streams_come_with_their_standing(ask: Caller) -> None:
    found = {one["name"]: one for one in ask("/api/v1/streams").json()["streams"]}
    assert list(found) == ["clicks", "customers", "order_changes", "payments", "returns", "stock"]
    orders = found["order_changes"]
    assert (orders["offset"], orders["lag"]["head"], orders["lag"]["behind"]) == (24, 29, 5)
    assert 2 * 3600 <= orders["lag"]["lag_seconds"] < 2 * 3600 + 600
    assert orders["commit"]["who"]["dag_id"] == DAG
    assert orders["held"]["owner"]["run_id"] == "manual__open"
    assert found["payments"]["lag"]["behind"] == 0
    assert found["payments"]["lag"]["lag_seconds"] == 0
    assert 9 < found["customers"]["lag"]["hours_left"] < 10.1
    assert found["returns"]["lag"]["state"] == "unreadable"
    assert "No table exists" in found["returns"]["lag"]["words"]
    assert found["stock"]["lag"]["stale"] is True
    assert "recreate the stream" in found["stock"]["lag"]["words"]
    assert found["clicks"]["initial_rows_pending"] is True


def test_streams_come_with_how_their_consumptions_went(ask: Caller) -> None:
    found = {one["name"]: one["health"] for one in ask("/api/v1/streams").json()["streams"]}
    assert (found["payments"]["consumptions"], found["payments"]["rows_delivered"]) == (12, 12)
    assert (found["payments"]["failures"], found["payments"]["last_error"]) == (0, None)
    stock = found["stock"]
    assert (stock["failures"], stock["failures_in_row"], stock["last_error_type"]) == (3, 3, "IncompatibleSchemaChange")
    assert "a column has another type" in stock["last_error"]
    assert stock["last_run"]["run_id"] == "scheduled__failed"
    assert stock["failing_since"] == stock["last_failed_at"]
    clicks = ask("/api/v1/stream", name="clicks").json()["stream"]["health"]
    assert (clicks["last_run"]["kind"], clicks["last_error"]) == ("hidden", None)  # it may name what is in the DAG
    assert clicks["failures_in_row"] == 1


def test_a_stream_has_one_state_the_worst_that_holds(ask: Caller) -> None:
    found = {one["name"]: one["state"] for one in ask("/api/v1/streams").json()["streams"]}
    assert found == {
        "clicks": "failing", "customers": "nearly_stale", "order_changes": "behind", "payments": "up_to_date",
        "returns": "unreadable", "stock": "stale",
    }  # fmt: skip
    assert {name: ask("/api/v1/stream", name=name).json()["stream"]["state"] for name in found} == found
    first = [one["name"] for one in ask("/api/v1/streams", sort="state").json()["streams"]]
    assert (first[:2], first[2:4], first[-1]) == (["stock", "clicks"], ["customers", "returns"], "payments")


def test_a_stream_that_never_delivered_and_failed_is_not_up_to_date(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(2)
    made._fail("bulk_0001", TransactionKey(DAG, "r", "t"), times=1)
    use(made.url)
    found = {one["name"]: one for one in Caller(app)("/api/v1/streams").json()["streams"]}
    assert [found[name]["lag"]["behind"] for name in ("bulk_0000", "bulk_0001")] == [0, 0]
    assert [found[name]["state"] for name in ("bulk_0000", "bulk_0001")] == ["undelivered", "failing"]


def test_rows_of_a_window_stand_beside_those_of_each_target(ask: Caller) -> None:
    newest = ask("/api/v1/stream", name="payments").json()["transactions"][0]
    assert [window["rows"] for window in newest["windows"]] == [1]
    assert {write["target"].rpartition("/")[2]: write["rows"] for write in newest["writes"]} == {
        "target0": {"inserted": 1},
        "target1": {"inserted": 1},
    }
    assert ask("/api/v1/stream", name="order_changes").json()["transactions"][0]["windows"][0]["rows"] is None  # open


def test_a_page_of_10000_streams_looks_at_no_more_than_it_shows(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(1)
    like = made.store.read(lambda c: dict(c.execute(sa.select(schema.streams)).mappings().one()))
    names = [f"bulk_{number:05}" for number in range(1, 10_000)]
    more = [{**like, "uid": name, "name": name, "folded_name": name} for name in names]
    made.store.write(lambda c: c.execute(schema.streams.insert(), more))
    use(made.url)
    ask = Caller(app)
    ask("/api/v1/streams", limit=1)  # opens the store
    for wish in ({"offset": 9_900}, {"search": "99"}, {"sort": "advanced", "descending": True}):
        found = ask("/api/v1/streams", wait=2, **wish).json()
        assert len(found["streams"]) == 50
        assert {one["lag"]["state"] for one in found["streams"]} == {"known"}


def test_a_page_can_be_searched_sorted_and_turned(ask: Caller) -> None:
    assert [one["name"] for one in ask("/api/v1/streams", search="CHANGES").json()["streams"]] == ["order_changes"]
    assert [one["name"] for one in ask("/api/v1/streams", held=True).json()["streams"]] == ["order_changes"]
    turned = ask("/api/v1/streams", sort="offset", descending=True, limit=2, offset=1).json()
    assert [one["name"] for one in turned["streams"]] == ["payments", "clicks"]
    assert turned["total"] == 6
    whole = ask("/api/v1/streams", sort="held", descending=True).json()["streams"]
    pages = walked(ask, "/api/v1/streams", "streams", sort="held", descending=True)
    assert [one["name"] for one in pages] == [one["name"] for one in whole]


def test_details_have_window_targets_and_every_move(ask: Caller) -> None:
    found = ask("/api/v1/stream", name="ORDER_changes").json()
    assert found["transactions"][0]["state"] == "open"
    assert [write["write_as"] for write in found["transactions"][0]["writes"]] == ["append", "append"]
    assert found["transactions"][0]["windows"][0]["to_version"] == 26
    assert len(found["moves"]) == 13
    versions = found["versions"]
    assert [field["name"] for field in versions["fields"]] == ["at", "offset", "head", "behind"]
    assert [one["offset"] for one in versions["points"] if one["head"] == one["offset"]] == [
        move["to_version"] for move in found["moves"]
    ]
    assert found["moves"][0]["who"] == {
        "kind": "run", "said": None, "dag_id": DAG, "run_id": found["stream"]["commit"]["who"]["run_id"],
        "task_id": "deliver_order_changes", "map_index": -1, "attempt": 1, "worker": "worker-3:417",
    }  # fmt: skip
    assert (found["moves"][-1]["why"], found["moves"][-1]["who"]["said"]) == ("created", "ana")
    by_hand = ask("/api/v1/stream", name="clicks").json()["moves"][0]
    assert "only readers of the object's DAG" in by_hand["why"]  # nobody may read the DAG that owns it
    assert by_hand["who"]["said"] is None


def test_the_window_that_a_link_names_is_among_the_transactions(ask: Caller) -> None:
    oldest = {"dag_id": DAG, "run_id": "payments__0", "task_id": "deliver_payments"}
    found = ask("/api/v1/stream", name="payments", **oldest).json()["transactions"]
    assert len(found) == 11
    assert [one["owner"]["run_id"] for one in found if one["asked_for"]] == ["payments__0"]
    other = ask("/api/v1/stream", name="payments", **{**oldest, "task_id": "elsewhere"}).json()["transactions"]
    assert not any(one["asked_for"] for one in other)


def test_a_window_is_found_by_its_run_alone(ask: Caller) -> None:
    key = {"dag_id": DAG, "run_id": "payments__3", "task_id": "deliver_payments"}
    assert ask("/api/v1/stream", **key).json()["stream"]["name"] == "payments"
    assert ask("/api/v1/stream", **{**key, "run_id": "never"}).status_code == 404
    assert ask("/api/v1/stream").status_code == 404


def test_names_of_dags_that_the_caller_may_not_read_are_not_shown(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    key = {"dag_id": DAG, "run_id": "payments__0", "task_id": "deliver_payments"}
    for answer in (
        ask("/api/v1/streams"),
        ask("/api/v1/stream", name="payments", **key),
        ask("/api/v1/stream", name="order_changes"),
    ):
        assert answer.status_code == 200
        assert DAG not in answer.text
        assert "worker-3" not in answer.text
        assert "manual__open" not in answer.text
        assert '"kind":"hidden"' in answer.text


def test_a_stream_or_connection_that_is_not_there_is_404_in_words(ask: Caller) -> None:
    assert "nobody" in ask("/api/v1/stream", name="nobody").json()["detail"]
    assert ask("/api/v1/stream", name="nobody").status_code == 404
    assert ask("/api/v1/streams", connection="aws_default").status_code == 404


def test_a_store_that_no_task_has_made_yet_is_empty_and_is_not_made(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    found = Caller(app)("/api/v1/streams").json()
    assert (found["store"], found["total"]) == ("absent", 0)
    assert not list(tmp_path.iterdir())


def test_a_store_that_is_not_migrated_stays_so_and_the_command_is_named(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    file = tmp_path / "old.db"
    file.touch()
    use(f"sqlite:///{file}")
    answer = Caller(app)("/api/v1/streams")
    assert answer.status_code == 503
    assert "airflow tidemark db migrate" in answer.json()["detail"]
    assert ControlStore(f"sqlite:///{file}", embedded=False).revision() is None


@pytest.mark.parametrize(
    ("path", "asked", "key"),
    [
        ("/api/v1/objects", {"sort": "since"}, ["objects since False", "0001-01-01T00:00:00+14:00", "a", "b", "c"]),
        (
            "/api/v1/history",
            {"kind": "stream", "name": "payments", "part": "versions"},
            ["versions, newer", -(1 << 63), 0, 0],
        ),
    ],
)
def test_a_cursor_that_somebody_made_up_is_refused_and_keeps_nobody_away(
    ask: Caller, path: str, asked: dict[str, str], key: list[Any]
) -> None:
    answer = ask(path, **asked, cursor=word_of(json.dumps(key)))
    assert answer.status_code == 422, answer.text
    assert ask(path, **asked).status_code == 200


def test_a_store_that_refuses_is_not_taken_for_one_that_does_not_answer(
    app: FastAPI, use: Callable[[str], None], postgresql: PostgresServer
) -> None:
    use(postgresql.url("no_such_database"))
    answer = Caller(another_app())("/api/v1/streams")
    assert answer.status_code == 503
    assert "The control store refuses this: check its login and its rights" in answer.json()["detail"]


def test_a_store_that_does_not_answer_is_said_without_its_address(app: FastAPI, use: Callable[[str], None]) -> None:
    use("postgresql+psycopg://tidemark:secret-word@127.0.0.1:1/nowhere")
    started = time.monotonic()
    answer = Caller(another_app())("/api/v1/streams")  # it pauses after that
    assert time.monotonic() - started < 50
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["detail"]
    assert "secret-word" not in answer.text
    assert "nowhere" not in answer.text


def test_a_lake_that_hangs_is_said_in_the_cell_and_the_page_comes(
    app: FastAPI, monitored: Monitored, use: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemark.lake.storage import Storage

    names = Storage.names

    released = threading.Event()

    def slow(self: Storage, *place: str) -> Any:
        if "payments" in self.uri:
            released.wait(60)
        return names(self, *place)

    monkeypatch.setattr(Storage, "names", slow)
    use(monitored.url)
    started = time.monotonic()
    found = {one["name"]: one["lag"] for one in Caller(another_app())("/api/v1/streams", wait=0.7).json()["streams"]}
    assert time.monotonic() - started < 50
    released.set()
    assert found["payments"]["state"] == "waiting"
    assert "has not answered" in found["payments"]["words"]
    assert found["order_changes"]["behind"] == 5


def test_nothing_in_the_store_changes_by_being_looked_at(ask: Caller, monitored: Monitored) -> None:
    def content() -> list[str]:
        with monitored.store._engine.connect() as connection:
            return list(connection.connection.driver_connection.iterdump())  # type: ignore[union-attr]

    before = content()
    ask("/api/v1/streams")
    ask("/api/v1/stream", name="order_changes")
    assert content() == before


def without_headers(document: dict[str, Any]) -> dict[str, Any]:
    """The same routes, which take no headers."""
    made = copy.deepcopy(document)
    for route in (route for path in made["paths"].values() for route in path.values()):
        route["parameters"] = [one for one in route.get("parameters", ()) if one["in"] != "header"]
    return made


@pytest.mark.parametrize("examples", some([10, 25], now=[10], reason="more random examples"))
def test_nothing_that_is_asked_brings_a_500(app: FastAPI, ask: Caller, examples: int) -> None:
    headers = {"Authorization": f"Bearer {token('op')}"}  # who may read connections, too
    client = TestClient(app, raise_server_exceptions=False)
    seen: dict[str, set[int]] = {}
    document = ask("/api/v1/openapi.json").json()
    (server,) = document["servers"]
    assert server == {"url": "/tidemark"}
    for mode, asked_of in (
        (GenerationMode.POSITIVE, document),
        (GenerationMode.NEGATIVE, without_headers(document)),  # no text of an If-None-Match is wrong
    ):
        for found in schemathesis.openapi.from_dict(asked_of).get_all_operations():
            operation = found.ok()

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
            def call(case: schemathesis.Case) -> None:
                asked = requests.Request(
                    **case.as_transport_kwargs(base_url=f"http://testserver{server['url']}")
                ).prepare()
                body = {} if asked.body is None else {"content": asked.body}
                kind = {"Content-Type": asked.headers.get("Content-Type", "application/json")} if body else {}
                known = {name: asked.headers[name] for name in ("If-None-Match",) if name in asked.headers}
                told = {**headers, **kind, **known}
                answer = client.request(str(asked.method), str(asked.url), headers=told, **body)
                assert answer.status_code < 500, (case.method, case.path, case.query, answer.text)
                seen.setdefault(case.path, set()).add(answer.status_code)

            call()
    assert {path: {200, 404} & codes != set() and 422 in codes for path, codes in seen.items()} == {
        "/api/v1/streams": True,
        "/api/v1/stream": True,
        "/api/v1/replications": True,
        "/api/v1/replication": True,
        "/api/v1/source/{connection_id}": True,
        "/api/v1/objects": True,
        "/api/v1/overview": True,
        "/api/v1/acts": True,
        "/api/v1/lineage": True,
        "/api/v1/run": True,
        "/api/v1/history": True,
        "/api/v1/objects/{kind}/{uid}/acts": True,
        "/api/v1/objects/{kind}/{uid}/acts/{act}": True,
    }


def test_importing_the_plugin_loads_no_web_framework(airflow_home: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, airflow.sdk; before = set(sys.modules)\n"
        "from tidemark.plugins.tidemark import TidemarkPlugin\n"
        "one, other = TidemarkPlugin(), TidemarkPlugin()\n"
        "assert one.external_views is not other.external_views\n"
        "print([m for m in ('fastapi', 'tidemark.control', 'pyarrow', 'sqlglot') if m in set(sys.modules) - before])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert said.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("base_url", "href"),
    [("", "/tidemark/"), ("http://h:1", "/tidemark/"), ("https://h/a/b/", "/a/b/tidemark/")],
)
def test_the_page_is_where_the_base_url_says(base_url: str, href: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.plugins.tidemark import TidemarkPlugin

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    view, *tabs = TidemarkPlugin().external_views
    assert SimpleNamespace(**view).href == href
    assert [tab["destination"] for tab in tabs] == ["dag", "dag_run", "task_instance"]
    assert all(tab["href"].startswith(f"{href}?view=run&dag_id={{DAG_ID}}") for tab in tabs)
    assert len({one["url_route"] for one in (view, *tabs)}) == 4  # Airflow finds them by these alone
