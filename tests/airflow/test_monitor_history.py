"""Histories by route and command: both have what the table of histories has, from the store alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from fastapi import FastAPI

import tidemark
from tests.airflow.command_line import Said, run_airflow
from tests.airflow.historic import HTML, RUNS, Historic
from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app
from tests.airflow.monitored import DAG
from tests.until import wait_until
from tidemark.channels.store import landing_tables
from tidemark.control.object_histories import HISTORIES, WITHOUT, Unit, parts_of
from tidemark.lake.storage import Storage
from tidemark.model.streams import Addressing, TableRef
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS

pytestmark = pytest.mark.airflow

HISTORY = "/api/v1/history"
PAGE = Path(tidemark.__file__).parent / "plugins" / "monitor" / "page"
DOCS = Path(__file__).parents[2] / "provider" / "docs" / "reference" / "monitor.md"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Historic:
    return Historic(tmp_path_factory.mktemp("historic"))


@pytest.fixture
def ask(airflow_home: Path, app: FastAPI, world: Historic, use: Callable[[str], None]) -> Caller:
    use(world.url)
    return Caller(another_app())


@pytest.fixture
def typed(airflow_home: Path, world: Historic, use: Callable[[str], None]) -> Callable[..., Said]:
    use(world.url)
    return lambda *words: run_airflow("tidemark", "objects", "history", *words)


def said(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def part_of(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (part for part in found["parts"] if part["name"] == name)
    return dict(one)


def test_only_those_who_may_read_assets_may_see_it(ask: Caller) -> None:
    asked = {"kind": "stream", "name": "order_changes"}
    assert [ask(HISTORY, role=role, **asked).status_code for role in (NOBODY, GUEST)] == [401, 403]


@pytest.mark.parametrize("kind", HISTORIES)
def test_route_and_command_have_what_the_table_has(
    ask: Caller, typed: Callable[..., Said], world: Historic, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """No log is read."""
    monkeypatch.setattr(Storage, "names", lambda *_: pytest.fail("a log was read"))
    name = world.named()[kind]
    found = said(ask(HISTORY, kind=kind, name=name))
    assert (found["kind"], found["name"], found["elsewhere"]) == (kind, name, None)
    told = [(part["name"], [field["name"] for field in part["fields"]]) for part in found["parts"]]
    assert told == [(part.name, [field.name for field in part.fields]) for part in parts_of(kind)]
    shown = typed(kind, name, "--limit", "200", "--output", "json")
    assert shown.returncode == 0, shown.stderr
    (row,) = json.loads(shown.stdout)
    for part in found["parts"]:
        points = row[part["name"]]
        assert len(points) == len(part["points"]) > 0
        runs = {field["name"] for field in part["fields"] if field["unit"] == Unit.RUN}
        for typed_point, point in zip(points, part["points"], strict=True):
            assert typed_point.keys() == point.keys()
            same = {field["name"] for field in part["fields"] if not field["private"]} - runs
            assert {n: plain(typed_point[n]) for n in same} == {n: plain(point[n]) for n in same}


def plain(value: Any) -> Any:
    """Airflow's console writes figures as texts. Times are compared as times."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return datetime.fromisoformat(value)
    return value if value is None or isinstance(value, list) else str(value)


def test_a_kind_without_a_history_says_who_has_it(ask: Caller, typed: Callable[..., Said]) -> None:
    """Its route waits for no look at the lake, and has the tokens of the channels after it."""
    asked = {"kind": "landing_table", "name": "shop.landing"}
    first = said(ask(HISTORY, **asked))
    assert first["elsewhere"] == WITHOUT["landing_table"]
    not_yet = first["not_looked_at"] == 1  # unless an earlier test has asked
    assert (first["parts"] == [], first["looked_at"] is None) == (not_yet, not_yet)
    wait_until(lambda: said(ask(HISTORY, **asked))["not_looked_at"] == 0)
    found = said(ask(HISTORY, **asked, limit=2))
    assert found["looked_at"] <= found["now"]
    told = {part["words"]: [point["token"] for point in part["points"]] for part in found["parts"]}
    words = "Channel {}, the newest minute first"
    assert told == {words.format(HTML): ["file_2", "file_1"], words.format("ORDERS"): ["14", "7"]}
    shown = typed("landing_table", "shop.landing", "--limit", "2", "--output", "json")
    (row,) = json.loads(shown.stdout)
    assert [str(point["number"]) for point in row["channel_0"]] == ["14", "7"]
    assert WITHOUT["landing_table"] in typed("landing_table", "shop.landing", "--output", "plain").stdout


def test_a_history_in_the_lake_that_cannot_be_read_is_said_in_words(ask: Caller, world: Historic) -> None:
    asked = {"kind": "landing_table", "name": "shop.lost"}
    lost = TableRef("shop.lost", "file:///nowhere", "id-2", Addressing.PATH)
    world.store.write(lambda c: landing_tables.register(c, lost, by="me", at=world.now))
    wait_until(lambda: said(ask(HISTORY, **asked))["not_looked_at"] == 0)
    found = said(ask(HISTORY, **asked))
    assert "No table exists" in found["elsewhere"]
    assert found["parts"] == []
    world.store.write(lambda c: landing_tables.end(c, "id-2", at=world.now))


def test_each_part_is_in_the_documentation_with_its_fields() -> None:
    histories = DOCS.read_text(encoding="utf-8").partition("## Histories")[2]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (`.*`) \|$", histories, re.MULTILINE)
    told = {(kind, part): re.findall(r"`(\w+)`", fields) for kind, part, fields in rows}
    exists = {(kind, part.name): [f.name for f in part.fields] for kind in HISTORIES for part in parts_of(kind)}
    assert told == exists


def test_portions_follow_by_cursor(ask: Caller, typed: Callable[..., Said]) -> None:
    asked = {"kind": "pipe", "name": "shop.good_files"}
    whole = part_of(said(ask(HISTORY, **asked)), "runs")
    assert (len(whole["points"]), whole["cursor"]) == (RUNS, None)
    first = part_of(said(ask(HISTORY, **asked, limit=7)), "runs")
    rest = part_of(said(ask(HISTORY, **asked, limit=7, part="runs", cursor=first["cursor"])), "runs")
    assert first["points"] + rest["points"] == whole["points"]
    assert rest["cursor"] is None
    (row,) = json.loads(typed("pipe", "shop.good_files", "--limit", "7", "--output", "json").stdout)
    assert row["cursors"] == {"runs": first["cursor"]}
    more = ("--part", "runs", "--cursor", row["cursors"]["runs"], "--output", "json")
    (following,) = json.loads(typed("pipe", "shop.good_files", *more).stdout)
    assert [one["files"] for one in following["runs"]] == [str(one["files"]) for one in rest["points"]]


@pytest.mark.parametrize("kind", ["change_stream", "consumer_group"])
def test_partitions_lead_back_and_forth_in_time_and_are_counted(
    ask: Caller, typed: Callable[..., Said], world: Historic, kind: str
) -> None:
    name = world.named()[kind]
    asked = {"kind": kind, "name": name, "limit": 2}

    def shown(**wish: Any) -> dict[str, Any]:
        return part_of(said(ask(HISTORY, **asked, **wish)), "partitions")

    first = shown()
    second = shown(part="partitions", cursor=first["cursor"])
    third = shown(part="partitions", cursor=second["cursor"])
    assert [(one["newer"] is None, one["cursor"] is None) for one in (first, second, third)] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip
    assert {one["total"] for one in (first, second, third)} == {5}
    assert shown(part="partitions", cursor=third["newer"])["points"] == second["points"]
    assert shown(part="partitions", cursor=second["newer"]) == first
    more = ("--limit", "2", "--part", "partitions", "--cursor", second["newer"], "--output", "json")
    (row,) = json.loads(typed(kind, name, *more).stdout)
    assert (row["totals"], row["newer"]) == ({"partitions": "5"}, {})
    assert row["cursors"] == {"partitions": first["cursor"]}
    assert [one["token"] for one in row["partitions"]] == [one["token"] for one in first["points"]]
    assert ask(HISTORY, **asked, part="partitions", cursor=second["newer"][:-3]).status_code == 422


@pytest.mark.parametrize(
    "wish",
    [
        {"kind": "table"},
        {"limit": 0},
        {"limit": 1001},
        {"name": ""},
        {"name": "\0"},
        {"part": "nothing"},
        {"cursor": "W10"},
        {"part": "moves", "cursor": "nonsense"},
    ],
)
def test_bad_questions_are_refused(ask: Caller, wish: dict[str, Any]) -> None:
    assert ask(HISTORY, **{"kind": "stream", "name": "order_changes", **wish}).status_code == 422


def test_an_object_that_does_not_live_is_not_found(
    ask: Caller, typed: Callable[..., Said], use: Callable[[str], None], tmp_path: Path
) -> None:
    for name in ("nobody", "order_change", "%"):
        answer = ask(HISTORY, kind="stream", name=name)
        assert (answer.status_code, "no stream has that name or uid" in answer.text) == (404, True)
    assert ask(HISTORY, kind="pipe", name="order_changes").status_code == 404
    failed = typed("stream", "nobody")
    assert (failed.returncode, "Traceback" in failed.stderr) == (1, False)
    use(f"sqlite:///{tmp_path}/none.db")
    assert ask(HISTORY, kind="stream", name="order_changes").status_code == 404
    assert not list(tmp_path.iterdir())


def test_a_name_with_html_is_a_name(ask: Caller) -> None:
    found = said(ask(HISTORY, kind="clustered_table", name=HTML))
    assert found["name"] == HTML
    assert said(ask(HISTORY, kind="clustered_table", name=found["uid"]))["parts"] == found["parts"]


def test_runs_and_their_texts_are_for_those_who_may_read_the_dag(ask: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    asked = {"kind": "clustered_table", "name": HTML}
    newest, before = part_of(said(ask(HISTORY, **asked)), "reclusterings")["points"][:2]
    assert (newest["run"], newest["error"], newest["why"]) == ({"kind": "hidden"}, FOR_OTHERS, FOR_OTHERS)
    assert (before["run"]["dag_id"], before["error"], before["why"]) == (DAG, None, "it is deeper than <4>")
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    for kind in ("clustered_table", "pipe", "stream", "replication", "consumer_group"):
        name = {"clustered_table": HTML, "pipe": "shop.good_files", "stream": "order_changes", "replication": "shop"}
        answer = ask(HISTORY, kind=kind, name=name.get(kind, "s/mirror"))
        assert answer.status_code == 200
        for secret in (DAG, "it is secret", "deeper", "not_for_all"):
            assert secret not in answer.text


def test_every_module_of_the_page_is_served_and_imports_what_is_there(ask: Caller) -> None:
    from tidemark.plugins.monitor.app import Part, Vendored

    assert {file.name for file in PAGE.iterdir() if file.is_file()} == {*get_args(Part), "index.html"}
    assert {file.name for file in (PAGE / "vendor").glob("*.mjs")} == set(get_args(Vendored))
    for file in (*PAGE.glob("*.js"), *(PAGE / "vendor").glob("*.mjs")):
        imported = re.findall(r"""^(?:import|export) .*from ["'](.*)["'];$""", file.read_text("utf-8"), re.MULTILINE)
        assert [one for one in imported if not one.startswith("./") or not (file.parent / one).exists()] == []
    answer = ask("/page/vendor/d3-scale.mjs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert ask("/page/vendor/d3-scale.mjs", role=NOBODY).status_code == 401
    assert ask("/page/vendor/README.md").status_code == 422


def test_modules_of_others_have_their_licence_and_version_beside_them() -> None:
    told = dict(re.findall(r"^\| ([a-z0-9-]+)[^|]*\| ([\d.]+) \|$", (PAGE / "vendor" / "README.md").read_text(), re.M))
    for file in (PAGE / "vendor").glob("*.mjs"):
        is_of_d3 = file.stem.startswith("d3-")  # whose files begin with their versions
        assert not is_of_d3 or f" v{told[file.stem]} " in file.read_text("utf-8").splitlines()[0]
        permission = "Permission to use, copy, modify" if is_of_d3 else "Permission is hereby granted, free of charge"
        assert permission in (PAGE / "vendor" / f"{file.stem}.LICENSE").read_text()
    assert len(told) == len(list((PAGE / "vendor").glob("*.mjs")))
