"""Lists by command in parts: each row once by the cursors, in the orders and with the filters of the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import Caller, another_app
from tests.airflow.needing import Needing
from tidemark.control.object_list import ObjectOrder
from tidemark.streams.store.overview import SortBy

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("parts")).fill()


@pytest.fixture
def world(airflow_home: Path, filled: Needing, use: Callable[[str], None]) -> Needing:
    use(filled.url)
    return filled


def asked(words: str, *more: str) -> tuple[list[dict[str, Any]], str | None]:
    """The rows, and the cursor for what follows."""
    said = run_airflow("tidemark", *words.split(), *more, "--output", "json")
    assert said.returncode == 0, said.stderr
    following = re.search(r"--cursor (\S+)", said.stderr)
    return json.loads(said.stdout), None if following is None else following[1]


def walked(words: str, take: Callable[[list[dict[str, Any]]], list[Any]], size: int) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        rows, cursor = asked(f"{words} --limit {size}", *(["--cursor", cursor] if cursor else []))
        part = take(rows)
        assert len(part) == size or (cursor is None and len(part) < size)
        found += part
    return found


def named(rows: list[dict[str, Any]]) -> list[Any]:
    return [(row.get("kind"), row["name"]) for row in rows]


LISTS = [
    *(f"objects list --sort {order.value}{down}" for order in ObjectOrder for down in ("", " --descending")),
    *(f"streams list --sort {order.value}{down}" for order in SortBy for down in ("", " --descending")),
    "objects list --problems --search S",
    "streams list --search SHOP.",
    "replications list",
    "overview",
]


@pytest.mark.parametrize("words", LISTS)
def test_the_parts_of_a_list_are_the_whole_list(world: Needing, words: str) -> None:
    whole, cursor = asked(words)
    assert cursor is None
    assert len(whole) >= 2
    assert walked(words, named, 3 if len(whole) > 3 else 1) == named(whole)
    if words.startswith(("objects", "streams", "replications")):
        assert named(asked(f"{words} --limit 2 --offset 1")[0]) == named(whole)[1:3]


def test_the_opposite_order_is_the_order_from_its_end_but_for_what_is_not_known(world: Needing) -> None:
    known = [row["name"] for row in asked("streams list --sort offset")[0]]
    opposite = [row["name"] for row in asked("streams list --sort offset --descending")[0]]
    assert opposite[0] == known[-1]
    times = [row["since"] for row in asked("objects list --sort since --descending")[0]]
    unknown = times.count(None)
    assert times == sorted([time for time in times if time is not None], reverse=True) + [None] * unknown


@pytest.mark.parametrize(
    ("words", "route", "rows", "wish"),
    [
        ("streams list --held", "streams", "streams", {"held": True}),
        ("streams list --search CHANGES", "streams", "streams", {"search": "CHANGES"}),
        ("streams list --search 100%", "streams", "streams", {"search": "100%"}),
        ("objects list --sort name --search R", "objects", "objects", {"sort": "name", "search": "R", "limit": 200}),
        ("replications list --limit 1", "replications", "replications", {"limit": 1}),
        ("replications show shop --search O", "replication", "objects", {"name": "shop", "search": "O"}),
        ("replications show shop --offset 2", "replication", "objects", {"name": "shop", "offset": 2}),
    ],
)  # fmt: skip
def test_a_command_lists_what_its_route_answers(
    world: Needing, app: FastAPI, words: str, route: str, rows: str, wish: dict[str, Any]
) -> None:
    answered = [one["name"] for one in Caller(another_app())(f"/api/v1/{route}", **wish).json()[rows]]
    found = asked(words)[0]
    listed = found if "show" not in words else found[0]["objects"]
    assert [one.get("object") or one["name"] for one in listed] == answered


def test_the_objects_of_a_replication_come_in_parts_the_worst_first(world: Needing) -> None:
    def objects(rows: list[dict[str, Any]]) -> list[Any]:
        return [one["object"] for one in rows[0]["objects"]]

    whole = objects(asked("replications show shop")[0])
    assert whole[0] == "shop.payments"
    assert walked("replications show shop", objects, 2) == whole


def test_acts_on_one_object_are_listed_by_its_uid(world: Needing) -> None:
    for act in ("resume", "pause"):
        assert run_airflow("tidemark", "pipes", act, "shop.orders_pipe").returncode == 0
    assert run_airflow("tidemark", "pipes", "pause", "shop.good_files").returncode == 0
    (shown,), _ = asked("objects show pipe shop.orders_pipe")
    assert [row["act"] for row in asked(f"objects acts --uid {shown['uid']}")[0]] == ["pause", "resume"]
    assert {row["by"] for row in asked("objects acts")[0]} == {"command"}


def test_nodes_of_the_lineage_are_as_many_as_asked_for(world: Needing) -> None:
    (found,), _ = asked("objects lineage --limit 3")
    assert (len(found["nodes"]), found["truncated"]) == (3, "True")


@pytest.mark.parametrize(
    "words",
    [
        "objects list --cursor W10",
        "objects list --sort kind --cursor {cursor}",
        "objects list --sort state --descending --cursor {cursor}",
        "streams list --cursor {cursor}",
        "replications list --cursor x",
        "replications show shop --cursor {cursor}",
        "overview --cursor {cursor}",
    ],
)
def test_a_cursor_of_another_list_or_order_is_refused_in_words(world: Needing, words: str) -> None:
    _, cursor = asked("objects list --limit 1")
    said = run_airflow("tidemark", *words.format(cursor=cursor).split())
    assert (said.returncode, said.stdout) == (1, "")
    assert re.match(r"(CursorInvalid|InvalidArgument): ", said.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    "part", ["--limit 0", "--limit -1", "--limit x", "--limit ٣", "--offset -1", "--limit 99999999999"]
)
def test_a_part_without_a_whole_number_is_refused(
    world: Needing, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_airflow("tidemark", "objects", "list", *part.split())
    assert ended.value.code == 2
