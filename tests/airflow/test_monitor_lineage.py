"""Lineage and the tabs beside DAGs, runs and tasks: routes and commands say the same, from the store alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.needing import Needing
from tests.airflow.test_monitor_overview import queries
from tidemark.control.object_lineage import read_graph
from tidemark.control.run_keys import RunPart
from tidemark.control.run_parts import touched_by
from tidemark.control.schema import objects
from tidemark.lake.storage import Storage
from tidemark.materialized.worker.views import get_view
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS
from tidemark.streams.store.schema import streams
from tidemark.streams.worker.object_lineage import LineageWish, part_of, shown_lineage
from tidemark.streams.worker.object_needs import NOTHING_KNOWN
from tidemark.streams.worker.runs import RunWish, read_run

pytestmark = pytest.mark.airflow

LINEAGE, RUN = "/api/v1/lineage", "/api/v1/run"
HTML = "shop.<img src=x onerror=alert(1)>"
TARGETS = ("target0", "target1")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("lineage")).fill()


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None]) -> Caller:
    """An app of its own: it has read nothing yet."""
    use(world.url)
    return Caller(another_app())


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody who may read assets and no DAG."""
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)


def found(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def edges(told: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    names = {node["id"]: f"{node['kind']} {node['name'].rsplit('/', 1)[-1]}" for node in told["nodes"]}
    return {(names[edge["source"]], names[edge["target"]]): edge for edge in told["edges"]}


def nodes(told: dict[str, Any]) -> set[str]:
    return {f"{node['kind']} {node['name'].rsplit('/', 1)[-1]}" for node in told["nodes"]}


def looked(ask: Caller, path: str, **wish: Any) -> dict[str, Any]:
    """The answer once a look has found what it can."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        told = found(ask(path, **wish))
        if told["looked_at"] is not None:
            return told
        time.sleep(0.2)
    raise AssertionError("no look has ended")


def test_only_those_who_may_read_assets_may_see_it(ask: Caller) -> None:
    for path, wish in ((LINEAGE, {}), (RUN, {"dag_id": DAG})):
        assert [ask(path, role=role, **wish).status_code for role in (NOBODY, GUEST)] == [401, 403]


def test_the_store_alone_has_tables_streams_targets_replications_pipes_and_views(
    ask: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(Storage, "names", lambda *_: released.wait(60) and [])
    started = time.monotonic()
    told = found(ask(LINEAGE))
    assert time.monotonic() - started < 30
    released.set()
    flows = edges(told)
    for target in TARGETS:
        assert flows["stream order_changes", f"table {target}"]["owners"] == [DAG]
    assert flows["table shop.order_changes", "stream order_changes"]["owners"] == []
    assert ("replication shop", "replicated_table shop.orders") in flows
    assert ("replicated_table shop.orders", "table lake.shop_orders") in flows
    assert ("pipe shop.good_files", "table shop.orders") in flows
    assert ("table source", "dynamic_table city_counts") in flows
    assert "stream clicks" in nodes(told)
    assert (told["total"], told["truncated"], told["centre"]) == (len(told["nodes"]), False, None)
    assert told["replications"] == 2


def test_a_lag_that_only_a_log_tells_is_on_the_edge_once_a_look_has_found_it(ask: Caller) -> None:
    pair = ("table shop.order_changes", "stream order_changes")
    first = edges(found(ask(LINEAGE)))[pair]
    assert (first["looked"], first["lag_amount"], first["lag_seconds"]) == (False, None, None)
    told = edges(looked(ask, LINEAGE))
    assert (told[pair]["looked"], told[pair]["lag_amount"], told[pair]["lag_unit"]) == (True, 5, "versions")
    assert told["stream order_changes", "table target0"]["lag_amount"] is None
    assert told["pipe shop.good_files", "table shop.orders"]["lag_seconds"] >= 3600


def test_nodes_have_the_states_of_their_objects(ask: Caller) -> None:
    told = {f"{node['kind']} {node['name']}": node for node in looked(ask, LINEAGE)["nodes"]}
    assert (told["stream stock"]["state"], told["stream stock"]["severity"]) == ("stale", "failed")
    assert told["dynamic_table city_counts"]["path"] is not None
    assert told["stream order_changes"]["view"] == {"stream": "order_changes"}
    table = told["table shop.orders"]
    assert (table["path"], table["state"], table["uid"], table["owner"]) == (None, None, None, None)


@pytest.mark.parametrize(
    ("asked", "depth", "seen"),
    [
        ("stream/ORDER_CHANGES", 1,
         {"table shop.order_changes", "stream order_changes", "table target0", "table target1"}),
        ("replication/shop", 1, None),
        ("table/shop.payments", 1, {"table shop.payments", "stream payments"}),
        ("replicated_table/shop/shop.orders", 2,
         {"replication shop", "replicated_table shop.orders", "table lake.shop_orders"}),
        ("table/shop.payments", 2, {"table shop.payments", "stream payments", "table target0", "table target1"}),
    ],
)  # fmt: skip
def test_it_is_narrowed_to_what_is_around_an_object(ask: Caller, asked: str, depth: int, seen: set[str] | None) -> None:
    told = found(ask(LINEAGE, object=asked, depth=depth))
    if seen is None:
        assert len(told["nodes"]) == 8
    else:
        assert nodes(told) == seen
    again = found(ask(LINEAGE, object=told["centre"], depth=depth))
    assert nodes(again) == nodes(told)


def test_a_target_has_all_streams_that_fill_it_before_it(ask: Caller) -> None:
    target = next(node for node in found(ask(LINEAGE))["nodes"] if node["name"].endswith("/target0"))
    told = found(ask(LINEAGE, object=target["id"], depth=1))
    assert nodes(told) == {"table target0", "stream left", "stream order_changes", "stream payments"}


def test_too_many_nodes_are_bounded_and_it_says_so(ask: Caller) -> None:
    told = found(ask(LINEAGE, limit=5))
    assert (len(told["nodes"]), told["truncated"]) == (5, True)
    assert told["total"] > 5
    known = {node["id"] for node in told["nodes"]}
    assert all({edge["source"], edge["target"]} <= known for edge in told["edges"])


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"object": "stream/nobody"}, 404),
        ({"object": "nothing/order_changes"}, 404),
        ({"object": "search_optimization/x"}, 404),
        ({"object": "stream"}, 422),
        ({"object": "stream/\0"}, 422),
        ({"depth": 11}, 422),
        ({"depth": 0}, 422),
        ({"limit": 2001}, 422),
        ({"connection": "never_was"}, 404),
    ],
)
def test_bad_questions_are_refused(ask: Caller, wish: dict[str, Any], code: int) -> None:
    assert ask(LINEAGE, **wish).status_code == code


@pytest.mark.usefixtures("blind")
def test_names_of_dags_that_the_caller_may_not_read_are_not_shown(ask: Caller) -> None:
    answer = ask(LINEAGE)
    assert DAG not in answer.text
    edge = edges(found(answer))["stream order_changes", "table target0"]
    assert (edge["owners"], edge["others"]) == ([], 1)


def test_a_store_that_no_task_has_made_yet_has_no_lineage(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    ask = Caller(another_app())
    told = found(ask(LINEAGE))
    assert (told["store"], told["nodes"], told["edges"], told["total"]) == ("absent", [], [], 0)
    assert found(ask(RUN, dag_id=DAG))["store"] == "absent"
    assert not list(tmp_path.iterdir())


def test_a_connection_that_cannot_be_used_is_no_missing_object(app: FastAPI, use: Callable[[str], None]) -> None:
    use("oracle://secret@h/s")
    for path, wish in ((LINEAGE, {"object": "stream/order_changes"}), (RUN, {"dag_id": DAG})):
        answer = Caller(another_app())(path, **wish)
        assert answer.status_code == 503
        assert "secret" not in answer.text


@pytest.fixture
def many(tmp_path: Path) -> Monitored:
    """1,000 streams of which one was made by the steps, on two tables."""
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(1)
    for table in (streams, objects):
        like = made.store.read(lambda c, table=table: dict(c.execute(sa.select(table)).mappings().first()))
        more = [
            {**like, "uid": f"{number:06}", "name": f"b{number:06}", "folded_name": f"b{number:06}"}
            for number in range(1, 1000)
        ]
        made.store.write(lambda c, table=table, more=more: c.execute(table.insert(), more))
    return made


def test_the_graph_and_a_part_of_it_take_as_many_queries_for_one_object_as_for_many(
    world: Needing, many: Monitored, tmp_path: Path
) -> None:
    few = Monitored(tmp_path / "few", f"sqlite:///{tmp_path}/few.db").many(1)
    stores = (few.store, many.store, world.store)
    assert len({queries(store, lambda store=store: store.read(read_graph)) for store in stores}) == 1

    def shown(store: Any, most: int) -> int:
        part = part_of(store.read(read_graph), LineageWish(most=most))
        assert len(part.nodes) == min(most, part.total)
        return queries(store, lambda: store.read(lambda c: shown_lineage(c, part, NOTHING_KNOWN, now=store.clock())))

    assert shown(many.store, 2) == shown(many.store, 400) == shown(few.store, 400)


def test_a_graph_of_1000_objects_is_answered_whole(many: Monitored, app: FastAPI, use: Callable[[str], None]) -> None:
    use(many.url)
    told = found(Caller(another_app())(LINEAGE, limit=2000))
    assert (told["total"], len(told["edges"])) == (1001, 1000)


def test_names_with_markup_are_text(app: FastAPI, use: Callable[[str], None], tmp_path: Path) -> None:
    made = Needing(tmp_path)
    made.monitored._clock(hours=1)
    made.pipe("shop.plain")
    made.monitored._stream("plain")
    made.store.write(lambda c: c.execute(objects.update().values(name=HTML, folded_name=HTML)))
    use(made.url)
    answer = Caller(another_app())(LINEAGE)
    assert answer.headers["content-type"] == "application/json"
    assert [node["name"] for node in found(answer)["nodes"]].count(HTML) == 2
    drawn = run_airflow("tidemark", "objects", "lineage", "--draw", "mermaid").stdout
    assert "<img" not in drawn
    assert "#lt;img" in drawn


def rows(*words: str) -> dict[str, Any]:
    said = run_airflow("tidemark", "objects", *words, "--output", "json")
    assert said.returncode == 0, said.stderr
    ((told),) = json.loads(said.stdout)
    return dict(told)


def listed(told: Any) -> list[dict[str, Any]]:
    """Parts are lists, or their text: as Airflow prints values of a document."""
    import ast

    return list(ast.literal_eval(told)) if isinstance(told, str) else list(told)


@pytest.mark.parametrize(("wish", "words"), [({}, ()), ({"object": "stream/payments"}, ("stream", "payments"))])
def test_route_and_command_say_the_same(ask: Caller, wish: dict[str, str], words: tuple[str, ...]) -> None:
    by_route = looked(ask, LINEAGE, **wish)
    by_command = rows("lineage", *words)
    same = ("kind", "name", "state", "severity", "path", "uid")
    assert [tuple(one[name] for name in same) for one in listed(by_command["nodes"])] == [
        tuple(one[name] for name in same) for one in by_route["nodes"]
    ]
    names = {node["id"]: f"{node['kind']} {node['name']}" for node in by_route["nodes"]}

    def lag(edge: dict[str, Any]) -> str | None:
        one = edge["lag_amount"] == 1
        unit = edge["lag_unit"].removesuffix("s") if one and edge["lag_unit"] else edge["lag_unit"]
        return None if edge["lag_amount"] is None else f"{edge['lag_amount']} {unit}"

    assert [
        (one["source"], one["target"], one["owners"], one["lag"]) for one in listed(by_command["edges"])
    ] == [
        (names[one["source"]], names[one["target"]], ", ".join(one["owners"]), lag(one)) for one in by_route["edges"]
    ]  # fmt: skip


@pytest.mark.parametrize("output", ["json", "yaml", "table", "plain"])
def test_the_command_has_every_output(ask: Caller, output: str) -> None:
    said = run_airflow("tidemark", "objects", "lineage", "stream", "payments", "--output", output)
    assert said.returncode == 0
    assert "target0" in said.stdout.replace("\n", "")


def test_the_command_says_which_object_is_missing(ask: Caller) -> None:
    for words in (("stream", "nobody"), ("stream",)):
        said = run_airflow("tidemark", "objects", "lineage", *words)
        assert said.returncode == 1
        assert "name" in said.stderr
    assert "digraph" in run_airflow("tidemark", "objects", "lineage", "--draw", "dot").stdout


def test_the_tab_of_a_run_has_its_windows_rows_and_evidence(ask: Caller) -> None:
    told = found(ask(RUN, dag_id=DAG, run_id="payments__3"))
    (one,) = told["transactions"]
    (window,) = one["windows"]
    assert (window["stream"], one["state"], one["owner"]["task_id"]) == ("payments", "committed", "deliver_payments")
    assert [write["target"].rsplit("/", 1)[-1] for write in one["writes"]] == list(TARGETS)
    assert all(write["version"] is not None for write in one["writes"])
    assert [(one["object"]["name"], one["did"]) for one in told["touched"]] == [("payments", "1 window taken")]
    assert (told["total"], len(told["owned"])) == (len(told["owned"]), told["total"])
    assert {"stream payments", "pipe shop.orders_pipe", "dynamic_table city_counts", "replication shop"} <= {
        f"{one['kind']} {one['name']}" for one in told["owned"]
    }


def test_the_tab_of_a_task_has_its_own_and_that_of_a_dag_has_the_newest(ask: Caller) -> None:
    key = {"dag_id": DAG, "run_id": "payments__3", "task_id": "deliver_payments", "map_index": -1}
    (own,) = found(ask(RUN, **key))["transactions"]
    assert own["asked_for"]
    for other in ({"task_id": "another"}, {"map_index": 0}):
        told = found(ask(RUN, **{**key, **other}))
        assert (told["transactions"], told["touched"]) == ([], [])
    of_the_dag = found(ask(RUN, dag_id=DAG))
    times = [one["opened_at"] for one in of_the_dag["transactions"]]
    assert times == sorted(times, reverse=True)
    assert len(times) > 10
    assert of_the_dag["touched"] == []


def test_a_run_has_touched_the_views_and_replicated_tables_that_it_wrote(ask: Caller, world: Needing) -> None:
    of_the_world = RunPart("dag", f"{DAG}/scheduled__1/city_counts/-1")  # as its tasks are called
    by_kind = world.store.read(lambda c: touched_by(c, of_the_world))
    view = get_view(world.store, "city_counts")
    refreshed = by_kind["dynamic_table", view.uid]
    assert refreshed.did.startswith("refresh done")
    assert "estimated" in str(refreshed.why)
    assert {uid for kind, uid in by_kind if kind == "dynamic_table"} == {view.uid}
    tables = found(ask(RUN, dag_id=DAG, run_id="scheduled__2026-11-22", task_id="backfill"))["touched"]
    assert "shop/shop.orders" in {one["object"]["name"] for one in tables}
    assert {one["why"] for one in tables} == {"its backfill was due: all rows of the source's table"}


def planned(ask: Caller, **part: Any) -> dict[str, dict[str, Any]]:
    """The next window of each stream, once a look in the background has read the logs."""
    for _ in range(100):
        told = {one["stream"]: one for one in found(ask(RUN, **part))["next"]}
        if all(one["state"] != "unknown" for one in told.values()):
            return told
        time.sleep(0.1)
    raise AssertionError(told)


def test_a_tab_says_why_each_stream_was_read_as_it_was(ask: Caller) -> None:
    (one,) = found(ask(RUN, dag_id=DAG, run_id="payments__3"))["touched"]
    assert one["why"] == "versions (3, 4] as inserted rows alone, written to 2 targets"
    (row,) = listed(rows("run", DAG, "payments__3")["touched"])
    assert row["why"] == one["why"]


def test_a_tab_has_a_dry_run_for_the_next_window_from_the_store_and_earlier_looks(ask: Caller, world: Needing) -> None:
    first = {one["stream"]: one for one in found(ask(RUN, dag_id=DAG))["next"]}
    assert first["payments"]["state"] == "unknown"  # no log is read in the request
    assert first["order_changes"]["state"] == "open"
    told = planned(ask, dag_id=DAG)
    assert (told["payments"]["state"], told["payments"]["versions"]) == ("nothing", 0)
    assert told["stock"]["state"] == "unreadable"
    assert told["stock"]["problem"]
    made = world.monitored
    made._commit("payments", times=3)
    made._clock(hours=0)
    behind = read_run(world.store, world.monitored.world.runtime.tables, RunWish(RunPart(DAG)))
    (payments,) = (one for one in behind.next if one.stream == "payments")
    assert (payments.state, payments.from_version, payments.to_version, payments.versions) == ("ready", 12, 15, 3)
    assert (payments.rows, payments.sample) == (3, 12)


@pytest.mark.parametrize("dag", ["not_for_all", "never_was"])
def test_a_dag_that_the_caller_may_not_read_or_that_is_gone_has_no_tab(ask: Caller, dag: str) -> None:
    answer = ask(RUN, dag_id=dag)
    assert answer.status_code == 403
    assert "clicks" not in answer.text


@pytest.mark.usefixtures("blind")
def test_a_tab_takes_the_right_to_read_its_dag(ask: Caller) -> None:
    assert ask(RUN, dag_id=DAG, run_id="payments__3").status_code == 403
    assert ask(RUN, dag_id="%").status_code == 403


def test_a_problem_of_another_dag_is_not_shown_in_a_tab(ask: Caller, world: Needing) -> None:
    mine = (objects.c.kind == "stream") & (objects.c.name == "clicks")
    before = world.store.read(lambda c: c.execute(sa.select(objects.c.owner_dag).where(mine)).scalar_one())
    world.store.write(lambda c: c.execute(objects.update().where(mine).values(owner_dag=DAG)))
    try:
        owned = {one["name"]: one for one in found(ask(RUN, dag_id=DAG))["owned"]}
        assert owned["clicks"]["problem"] == FOR_OTHERS
    finally:
        world.store.write(lambda c: c.execute(objects.update().where(mine).values(owner_dag=before)))


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"dag_id": ""},
        {"dag_id": DAG, "map_index": -2},
        {"dag_id": "\0"},
        {"dag_id": DAG, "cursor": "W10"},
        {"dag_id": DAG, "limit": 0},
        {"dag_id": DAG, "limit": 201},
    ],
)
def test_bad_questions_about_runs_are_refused(ask: Caller, wish: dict[str, Any]) -> None:
    assert ask(RUN, **wish).status_code == 422


def test_the_command_of_a_run_says_the_same(ask: Caller) -> None:
    by_route = found(ask(RUN, dag_id=DAG, run_id="payments__3"))
    by_command = rows("run", DAG, "payments__3")
    (one,) = by_route["transactions"]
    assert [(row["stream"], row["from"], row["to"], row["rows"]) for row in listed(by_command["windows"])] == [
        (row["stream"], str(row["from_version"]), str(row["to_version"]), str(row["rows"])) for row in one["windows"]
    ]
    assert [(row["target"], int(row["version"])) for row in listed(by_command["writes"])] == [
        (row["target"], row["version"]) for row in one["writes"]
    ]
    assert [(row["name"], row["did"]) for row in listed(by_command["touched"])] == [("payments", "1 window taken")]
    assert {row["uid"] for row in listed(by_command["owned"])} == {row["uid"] for row in by_route["owned"]}


def test_a_tab_is_walked_in_parts_by_route_and_command(ask: Caller) -> None:
    whole = found(ask(RUN, dag_id=DAG))
    assert (whole["continues"], whole["cursors"]) == (None, {})
    for name, key in (("transactions", lambda one: one["owner"]), ("owned", lambda one: one["uid"])):
        part, walked = found(ask(RUN, dag_id=DAG, limit=5)), []
        while True:
            walked += part[name]
            if name not in part["cursors"]:
                break
            part = found(ask(RUN, dag_id=DAG, limit=5, cursor=part["cursors"][name]))
            assert part["continues"] == name
        assert [key(one) for one in walked] == [key(one) for one in whole[name]]
    first = rows("run", DAG, "--limit", "5")
    told = [*listed(first["windows"])]
    cursors = json.loads(str(first["cursors"]).replace("'", '"'))
    more = rows("run", DAG, "--limit", "200", "--cursor", cursors["transactions"])
    assert (listed(more["owned"]), more["cursors"]) in (([], "{}"), ([], {}))
    told += listed(more["windows"])
    assert [row["stream"] for row in told] == [
        window["stream"] for one in whole["transactions"] for window in one["windows"]
    ]
    assert "1 to 200" in run_airflow("tidemark", "objects", "run", DAG, "--limit", "0").stderr


def test_a_tab_takes_as_many_queries_for_one_transaction_as_for_many(world: Needing) -> None:
    from tidemark.streams.worker.runs import shown_run

    def asked(*part: str) -> int:
        act = lambda c: shown_run(c, RunWish(RunPart(*part)), NOTHING_KNOWN, now=world.store.clock())  # noqa: E731
        return queries(world.store, lambda: world.store.read(act))

    of_touched = queries(world.store, lambda: world.store.read(lambda c: touched_by(c, RunPart(DAG, "payments__3"))))
    assert asked(DAG) <= asked(DAG, "payments__3") <= asked(DAG) + of_touched
