"""The overview: what needs attention, of every kind, from the store alone; page, route and command say the same."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.needing import IN_THE_STORE, Needing
from tidemark.control import object_kinds
from tidemark.control.object_kinds import ObjectEntry, ObjectKind, Severity
from tidemark.control.objects import touch
from tidemark.control.schema import acts, objects
from tidemark.lake.storage import Storage
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS

pytestmark = pytest.mark.airflow

OVERVIEW = "/api/v1/overview"
BY_LOOKS = [
    ("failed", "stream", "returns"),
    ("behind", "dynamic_table", "late_counts"),
    ("warning", "stream", "customers"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("needing")).fill()


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None]) -> Caller:
    """An app of its own: it has looked at nothing yet."""
    use(world.url)
    return Caller(another_app())


def named(answer: Any) -> list[tuple[str, str, str]]:
    assert answer.status_code == 200, answer.text
    return [(one["need"], one["kind"], one["name"]) for one in answer.json()["needs"]]


def looked(ask: Caller, **wish: Any) -> dict[str, Any]:
    """The overview once a look has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found: dict[str, Any] = ask(OVERVIEW, **wish).json()
        if found["looked_at"] is not None:
            return found
        time.sleep(0.2)
    raise AssertionError("no look has ended")


def of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']} {one['name']}": one for one in found["needs"]}


def test_only_those_who_may_read_assets_may_see_it(ask: Caller) -> None:
    for path in (OVERVIEW, "/api/v1/acts"):
        assert [ask(path, role=role).status_code for role in (NOBODY, GUEST)] == [401, 403]


def test_the_store_alone_says_what_needs_somebody_the_worst_first(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(Storage, "names", lambda *_: released.wait(60) and [])
    started = time.monotonic()
    answer = ask(OVERVIEW)
    assert time.monotonic() - started < 30
    assert named(answer) == IN_THE_STORE
    found = answer.json()
    assert (found["looked_at"], found["cursor"], found["total"]) == (None, None, len(IN_THE_STORE))
    assert found["not_looked_at"] == sum(found["objects"].values())
    assert found["counts"] == {"failed": 3, "warning": 4, "stopped": 3}
    assert found["objects"] == {
        "dynamic_table": 2, "pipe": 3, "replicated_table": 7, "replication": 2, "stream": 7,
    }  # fmt: skip
    released.set()


def test_each_need_has_its_reason_its_time_its_run_and_the_way_out(ask: Caller) -> None:
    found = of(ask(OVERVIEW).json())
    stock = found["stream stock"]
    assert "a column has another type" in stock["reason"]
    assert stock["since"] is not None
    assert (stock["owner"], stock["run"]["run_id"]) == (DAG, "scheduled__failed")
    assert stock["run_path"] == f"dags/{DAG}/runs/scheduled__failed"
    assert stock["log_path"] == f"dags/{DAG}/runs/scheduled__failed/tasks/deliver_stock"
    assert stock["commands"] == ["airflow tidemark streams show stock"]
    left = found["stream left"]
    assert (left["state"], left["run"]["run_id"]) == ("locked", "manual__left")
    assert "nothing of it was submitted" in left["reason"]
    assert left["commands"][1] == "airflow tidemark streams release left"
    assert stock["run_met"] is True
    assert found["replication crm"]["commands"] == ["airflow tidemark replications resume crm"]
    assert found["dynamic_table city_counts"]["reason"] == "it is suspended: its source is loaded again"
    assert found["pipe shop.orders_pipe"]["reason"] == "it is paused"
    assert found["pipe shop.bad_files"]["reason"] == "a file was skipped"
    assert found["replicated_table shop/shop.payments"]["commands"][0] == (
        "airflow tidemark replications errors shop --object shop.payments"
    )


def test_a_need_that_no_run_met_has_the_task_that_touched_the_object_last(ask: Caller) -> None:
    found = of(looked(ask))
    tasks = {
        "stream customers": None,  # no task has read it
        "replication crm": "scheduled__2026-11-22/tasks/prepare",
        "replicated_table shop/shop.stock": "scheduled__2026-11-22/tasks/capture",
        "pipe shop.bad_files": "scheduled__1/tasks/load",
    }
    assert {name: found[name]["log_path"] for name in tasks} == {
        name: None if task is None else f"dags/{DAG}/runs/{task}" for name, task in tasks.items()
    }
    assert [found[name]["run_met"] for name in tasks] == [False, False, True, True]
    by_command = {f"{one['kind']} {one['name']}": one for one in rows()}
    assert by_command["replication crm"]["run"] == f"{DAG}/scheduled__2026-11-22/prepare/-1"
    assert [str(by_command[name]["run_met"]) for name in tasks] == ["False", "False", "True", "True"]


def test_a_need_says_how_many_tables_and_objects_depend_on_it_and_where_they_are_shown(ask: Caller) -> None:
    until, needs = time.monotonic() + 30, of(ask(OVERVIEW).json())
    assert {one["dependents"] for one in needs.values()} == {None}  # nobody waits for the lineage
    while any(one["dependents"] is None for one in needs.values()):
        assert time.monotonic() < until
        time.sleep(0.1)
        needs = of(ask(OVERVIEW).json())
    by_command = {f"{one['kind']} {one['name']}": one for one in rows()}
    for name, one in needs.items():
        assert one["lineage"] == {"view": "lineage", "object": f"{one['kind']}/{one['uid']}"}
        part = ask("/api/v1/lineage", object=one["lineage"]["object"], depth=10, limit=2000).json()
        below, waiting = set(), [part["centre"]]
        while waiting:
            of_it = waiting.pop()
            after = {edge["target"] for edge in part["edges"] if edge["source"] == of_it} - below
            below |= after
            waiting += after
        assert one["dependents"] == len(below), name
        assert int(by_command[name]["dependents"]) == len(below)
    assert needs["replication crm"]["dependents"] == 0
    assert needs["replicated_table shop/shop.stock"]["dependents"] > 0


def test_a_reason_of_a_person_is_for_readers_of_the_owners_dag(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    assert of(ask(OVERVIEW).json())["replication crm"]["reason"] == "it is paused: the CRM moves, by ana"
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    crm = of(ask(OVERVIEW).json())["replication crm"]
    assert (crm["reason"], crm["run"]["kind"], crm["log_path"]) == ("it is paused", "hidden", None)


def test_the_document_of_the_routes_says_what_the_new_fields_mean(ask: Caller) -> None:
    described = ask("/api/v1/openapi.json").json()["components"]["schemas"]["NeedAnswer"]["description"]
    for said in ("`run_met`", "`dependents`", "`lineage`"):
        assert said in described


def test_looks_in_the_background_find_what_only_logs_and_lags_tell(ask: Caller) -> None:
    found = looked(ask)
    by_name = of(found)
    assert {(one["need"], one["kind"], one["name"]) for one in found["needs"]} == {*IN_THE_STORE, *BY_LOOKS}
    assert (by_name["stream stock"]["state"], by_name["stream customers"]["state"]) == ("stale", "nearly_stale")
    assert "recreate_stale_stream" in by_name["stream stock"]["commands"][0]
    assert "behind its target lag" in by_name["dynamic_table late_counts"]["reason"]
    assert by_name["stream customers"]["since"] is not None
    ranks = [{"failed": 0, "stopped": 2}.get(one["need"], 1) for one in found["needs"]]
    assert ranks == sorted(ranks)


def test_an_answer_of_a_log_is_dropped_once_the_stream_has_moved(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Needing(tmp_path)
    made.monitored._clock(hours=158)
    made.monitored._stream("customers")
    made.monitored._commit("customers", times=4)
    use(made.url)
    ask = Caller(another_app())
    assert [one["name"] for one in looked(ask)["needs"]] == ["customers"]
    made.monitored._clock(hours=0)
    made.monitored._consume("late", "customers")
    assert ask(OVERVIEW).json()["needs"] == []


def test_a_stream_behind_its_usual_lag_is_in_route_and_command_with_the_way_out(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Needing(tmp_path)
    made.monitored.unusual("orders")
    use(made.url)
    (one,) = looked(Caller(another_app()))["needs"]
    assert (one["need"], one["words"], one["group"]) == ("behind_usual", "behind its usual lag", "warning")
    assert (one["state"], one["severity"], one["since_seen"]) == ("behind", "warning", False)
    assert one["reason"].startswith("it is behind its usual lag of ")
    assert abs(datetime.fromisoformat(one["since"]) - (made.monitored.now - timedelta(hours=2))) < timedelta(seconds=1)
    assert one["commands"] == ["airflow tidemark objects history stream orders"]
    (row,) = rows()
    assert [row[name] for name in ("need", "reason", "command")] == [one["need"], one["reason"], *one["commands"]]


def test_the_list_of_objects_warns_of_it_as_the_overview_does(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    made = Needing(tmp_path)
    made.monitored.unusual("orders")
    use(made.url)
    ask = Caller(another_app())
    (need,) = looked(ask)["needs"]
    (listed,) = ask("/api/v1/objects", wait=10).json()["objects"]
    assert [listed[name] for name in ("state", "severity", "problem")] == ["behind", "warning", need["reason"]]


def test_parts_that_follow_each_other_are_the_whole(ask: Caller) -> None:
    whole = looked(ask)
    parts, cursor = [], None
    for _ in range(10):
        part = ask(OVERVIEW, limit=3, **({} if cursor is None else {"cursor": cursor})).json()
        parts += part["needs"]
        cursor = part["cursor"]
        if cursor is None:
            break
    assert [one["uid"] for one in parts] == [one["uid"] for one in whole["needs"]]


@pytest.mark.parametrize(
    "wish",
    [{"cursor": "x"}, {"cursor": "W10"}, {"cursor": "bnVsbA"}, {"limit": 0}, {"kind": "table"}, {"search": "\0"}],
)
def test_bad_questions_are_refused(ask: Caller, wish: dict[str, Any]) -> None:
    assert ask(OVERVIEW, **wish).status_code == 422


def test_parts_of_acts_that_follow_each_other_are_the_whole(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    """By route and command, also if more is done meanwhile."""
    made = Needing(tmp_path)
    row = {
        "kind": "pipe",
        "uid": "u",
        "name": "p",
        "act": "drop",
        "who": "ana",
        "revision": "{}",
        "done_at": made.store.clock(),
    }

    def done(*numbers: int) -> None:
        made.store.write(lambda c: c.execute(acts.insert(), [{**row, "why": f"why {number}"} for number in numbers]))

    done(*range(250))
    use(made.url)
    ask, found, cursor = Caller(another_app()), [], None
    for size in (200, 50):
        part = ask("/api/v1/acts", limit=200, **({} if cursor is None else {"cursor": cursor})).json()
        assert len(part["acts"]) == size
        found += [one["why"] for one in part["acts"]]
        cursor = part["cursor"]
        done(1000)
    assert (found, cursor) == ([f"why {number}" for number in reversed(range(250))], None)
    said = run_airflow("tidemark", "objects", "acts", "--limit", "249", "--output", "json")
    told, _, following = said.stderr.strip().splitlines()[-1].rpartition(" ")
    assert (len(json.loads(said.stdout)), told) == (249, "Earlier acts: --cursor")
    rest = run_airflow("tidemark", "objects", "acts", "--cursor", following, "--output", "json")
    assert [one["why"] for one in json.loads(rest.stdout)] == ["why 2", "why 1", "why 0"]
    assert "--cursor" not in rest.stderr
    assert [ask("/api/v1/acts", cursor=bad).status_code for bad in ("x", "bnVsbA", "W10", "é")] == [422] * 4


def test_it_is_narrowed_by_kind_and_name(ask: Caller) -> None:
    assert named(ask(OVERVIEW, kind="pipe")) == [one for one in IN_THE_STORE if one[1] == "pipe"]
    assert named(ask(OVERVIEW, search="STOCK")) == [one for one in IN_THE_STORE if "stock" in one[2]]


def test_nothing_wrong_is_said_with_figures(app: FastAPI, use: Callable[[str], None], tmp_path: Path) -> None:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(3)
    use(made.url)
    found = looked(Caller(another_app()))
    assert (found["needs"], found["objects"], found["total"], found["not_looked_at"]) == ([], {"stream": 3}, 0, 0)
    said = run_airflow("tidemark", "overview", "--output", "json")
    assert (said.returncode, json.loads(said.stdout)) == (0, [])
    assert "Nothing needs attention: 3 streams." in said.stderr
    for part in (("--kind", "stream"), ("--search", "x")):
        assert run_airflow("tidemark", "overview", *part).stderr.endswith("No object that fits needs attention.\n")


def test_a_store_that_no_task_has_made_yet_needs_nobody(
    app: FastAPI, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    found = Caller(another_app())(OVERVIEW).json()
    assert (found["store"], found["needs"], found["objects"]) == ("absent", [], {})
    assert not list(tmp_path.iterdir())


def test_a_kind_that_registers_later_is_there_without_a_word_about_it(
    ask: Caller, world: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = [ObjectEntry("u1", "events", "frayed", Severity.WARNING, "its depth is 40", met_in=(f"{DAG}/r/t/-1",))]
    kind = ObjectKind("frayed_table", lambda *_: live, "streams.store.objects:stream_lags")
    object_kinds.kind_named.cache_clear()
    monkeypatch.setitem(object_kinds.KINDS, "frayed_table", "streams.store.objects:FRAYED")
    monkeypatch.setattr("tidemark.streams.store.objects.FRAYED", kind, raising=False)
    world.store.write(lambda connection: touch(connection, "frayed_table", ["u1"], by=f"{DAG}/r/t/-1"))
    try:
        (found,) = (one for one in ask(OVERVIEW).json()["needs"] if one["kind"] == "frayed_table")
        assert (found["need"], found["reason"], found["run"]["run_id"]) == ("warning", "its depth is 40", "r")
        assert found["commands"] == ["airflow tidemark objects show frayed_table events"]
        assert found["acts"] == []
    finally:
        live.clear()
        world.store.write(lambda connection: touch(connection, "frayed_table", ["u1"]))
        object_kinds.kind_named.cache_clear()


def test_names_of_dags_that_the_caller_may_not_read_are_not_shown(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    answer = ask(OVERVIEW)
    assert DAG not in answer.text
    assert "manual__left" not in answer.text
    assert "a column has another type" not in answer.text
    assert of(answer.json())["stream stock"]["reason"] == FOR_OTHERS


@pytest.fixture
def many(tmp_path: Path) -> Monitored:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db").many(1)
    like = made.store.read(lambda c: dict(c.execute(sa.select(objects)).mappings().one()))
    names = [f"bulk_{number:05}" for number in range(1, 10_000)]
    more = [{**like, "uid": name, "name": name, "folded_name": name} for name in names]
    for one in more[::10]:
        one |= {"severity": "failed", "state": "failing"}
    made.store.write(lambda c: c.execute(objects.insert(), more))
    return made


def queries(store: Any, act: Callable[[], object]) -> int:
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(store._engine, "before_cursor_execute", note)
    act()
    sa.event.remove(store._engine, "before_cursor_execute", note)
    return len(seen)


def test_a_page_takes_as_many_queries_for_one_object_as_for_many(world: Needing, many: Monitored) -> None:
    from tidemark.control.object_list import ObjectsWish
    from tidemark.streams.worker.object_needs import NOTHING_KNOWN, needs_page

    def page(store: Any, limit: int, **wish: str) -> Callable[[], object]:
        how = {"after": None, "limit": limit, "now": store.clock()}
        return lambda: store.read(lambda c: needs_page(c, NOTHING_KNOWN, ObjectsWish(**wish), **how))

    one, all_of_them = (
        {kind: queries(world.store, page(world.store, limit, kind=kind)) for kind in object_kinds.KINDS}
        for limit in (1, 200)
    )
    assert one == all_of_them
    assert len({queries(many.store, page(many.store, limit)) for limit in (1, 10, 200)}) == 1


def test_a_page_of_10000_objects_counts_them_all(many: Monitored, app: FastAPI, use: Callable[[str], None]) -> None:
    use(many.url)
    found = Caller(another_app())(OVERVIEW).json()
    assert (found["total"], len(found["needs"])) == (950, 0)  # 50 rows are of streams that are not there


def rows(*words: str) -> list[dict[str, Any]]:
    said = run_airflow("tidemark", "overview", *words, "--output", "json")
    assert said.returncode == 0, said.stderr
    found: list[dict[str, Any]] = json.loads(said.stdout)
    return found


def test_route_and_command_say_the_same(ask: Caller) -> None:
    by_route = looked(ask)["needs"]
    by_command = rows()
    same = ("need", "kind", "name", "state", "severity", "advice", "uid")
    assert [{name: one[name] for name in same} for one in by_command] == [
        {name: one[name] for name in same} for one in by_route
    ]
    assert [one["command"].split("\n") for one in by_command] == [one["commands"] for one in by_route]
    for command, route in zip(by_command, by_route, strict=True):
        assert command["reason"] == route["reason"] or route["reason"].startswith(FOR_OTHERS)
    assert [one["name"] for one in rows("--kind", "replication")] == ["crm"]


@pytest.mark.parametrize("output", ["json", "yaml", "table", "plain"])
def test_the_command_has_every_output(ask: Caller, output: str) -> None:
    said = run_airflow("tidemark", "overview", "--output", output)
    assert said.returncode == 0
    assert "city_counts" in said.stdout.replace("\n", "")


def commands_in(text: str) -> Iterator[str]:
    yield from re.findall(r"airflow tidemark [^\n]+", text)


def test_every_command_that_is_advised_can_be_typed() -> None:
    import shlex

    from airflow.cli.cli_parser import get_parser

    from tidemark.control.object_acts import acts_of

    for kind in object_kinds.KINDS:
        found = object_kinds.kind_named(kind)
        advised = [*found.advice.values(), found.advice_for("never heard of", "a", None)]
        told = [command for one in advised for command in one.of("a name; rm", "its 'parent'").commands]
        told += [one.command.format(name="a", within="b") for one in acts_of(kind)]
        assert told
        for command in told:
            words = shlex.split(command)
            assert words.pop(0) == "airflow"
            if words[0] == "tidemark":
                get_parser().parse_args(words)
            else:
                assert (words[:3], json.loads(words[-1])) == (
                    ["dags", "trigger", "recreate_stale_stream"], {"stream": "a name; rm"},
                )  # fmt: skip
