"""One table of what exists, compared with the app, the modules of the page and the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tidemark
from tests.airflow.monitor_app import GUEST, NOBODY, Caller, another_app
from tests.architecture.test_command_line_page import commands
from tidemark.control.object_acts import acts_of
from tidemark.control.object_kinds import KINDS
from tidemark.control.object_list import ObjectOrder
from tidemark.streams.store.overview import SortBy

pytestmark = pytest.mark.airflow

TABLE = Path(__file__).parents[2] / "provider" / "docs" / "reference" / "monitor.md"
PAGE = Path(tidemark.__file__).parent / "plugins" / "monitor" / "page"
ACT = "POST /objects/{kind}/{uid}/acts/{act}"


def rows(first: str) -> Iterator[list[str]]:
    """The rows of the table whose first column has that heading."""
    (table,) = re.findall(
        rf"^\| {first} \|.*\n\| ---.*\n((?:\|.*\n)+)", TABLE.read_text(encoding="utf-8"), re.MULTILINE
    )
    for line in table.splitlines():
        yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def routes() -> dict[str, dict[str, object]]:
    from tidemark.plugins.monitor.app import build_app

    found = build_app().openapi()["paths"]
    told = {f"{method.upper()} {path}": what for path, methods in found.items() for method, what in methods.items()}
    assert all("/api/v1/" in name for name in told)
    return {name.replace("/api/v1", "", 1): what for name, what in told.items()}


def typed() -> set[str]:
    of_groups = {f"airflow tidemark {group} {name}" for group, name, _ in commands()}
    return {name.removesuffix(" overview") if name.endswith("overview overview") else name for name in of_groups}


def test_every_route_of_the_app_is_in_the_table(airflow_home: Path) -> None:
    assert {route for _, route, _ in rows("view")} | {ACT} == routes().keys()
    assert ACT in TABLE.read_text(encoding="utf-8").replace("`", "")


def test_every_command_of_the_table_can_be_typed(airflow_home: Path) -> None:
    told = {command for *_, command in (*rows("view"), *rows("kind"))}
    assert told - typed() == set()


def test_every_act_that_a_kind_offers_is_in_the_table_with_its_command() -> None:
    offered = {
        (kind, act.name, re.match(r"airflow tidemark [a-z-]+ [a-z-]+", act.command).group())  # type: ignore[union-attr]
        for kind in KINDS
        for act in acts_of(kind)
    }
    assert {tuple(row) for row in rows("kind")} == offered


def test_every_field_of_an_act_is_in_the_table_and_its_command_has_the_option(airflow_home: Path) -> None:
    from airflow.cli.cli_parser import get_parser

    declared = {
        (f"{act.name}` of a `{kind}", field.name, field.type.value, field.option): act.command
        for kind in KINDS
        for act in acts_of(kind)
        for field in act.fields
    }
    assert {tuple(row) for row in rows("act")} == declared.keys()
    for (*_, option), command in declared.items():
        words = command.format(name="a", within="b").replace("VERSION", "1").split()[1:]
        if option.startswith("--") and option not in words:
            given = [] if "flag" in next(row for row in declared if row[3] == option) else ["1"]
            get_parser().parse_args([*words, option, *given])


def test_every_view_of_the_table_is_one_of_the_pages_and_asks_its_route() -> None:
    modules = {file.name: file.read_text(encoding="utf-8") for file in PAGE.glob("*.js")}
    for view, route, _ in rows("view"):
        path = "api/v1" + route.removeprefix("GET ").replace("{connection_id}", "${encodeURIComponent(name)}")
        path = re.sub(r"(?<!\$)\{(kind|uid)\}", r"${encodeURIComponent(\1)}", path)
        assert any(re.search(rf"[\"`]{re.escape(path)}[\"`]", text) for text in modules.values()), route
        named = re.search(r"\?(?:view=)?([a-z]+)", view)
        assert named is None or f'"{named[1]}"' in modules["monitor.js"], view
    asked = {found for text in modules.values() for found in re.findall(r"[\"`](api/v1/[a-z]+)", text)}
    assert asked == {f"api/v1/{name.split('/')[1]}" for name in routes()}


def test_modules_of_the_page_import_what_they_call_and_nothing_else() -> None:
    texts = {file.name: re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8")) for file in PAGE.glob("*.js")}
    offered = {name for text in texts.values() for name in re.findall(r"^export (?:async )?function (\w+)", text, re.M)}
    for file, text in texts.items():
        body = re.sub(r"import \{[^}]*\} from [^\n]*", "", text)
        taken = {name for names in re.findall(r"import \{([^}]*)\} from", text) for name in re.findall(r"\w+", names)}
        own = set(re.findall(r"(?:function|const|let|class) (\w+)", body))
        called = set(re.findall(r"(?<![\w.])(\w+)\(", body)) & offered - own
        assert called - taken == set(), file
        assert {name for name in taken if not re.search(rf"\b{name}\b", body)} == set(), file


def test_every_route_describes_its_refusals_and_its_answer() -> None:
    for name, what in routes().items():
        answers = what["responses"]
        assert isinstance(answers, dict)
        assert {"200", "401", "403", "404", "503"} <= answers.keys(), name
        assert "schema" in answers["200"]["content"]["application/json"], name
        assert what["description"], name


def test_the_document_itself_is_for_readers(airflow_home: Path, app: object) -> None:
    ask = Caller(another_app())
    assert [ask("/api/v1/openapi.json", role=role).status_code for role in (NOBODY, GUEST)] == [401, 403]
    found = ask("/api/v1/openapi.json").json()
    assert found["openapi"].startswith("3.")
    assert "ActWish" in found["components"]["schemas"]
    assert found["servers"] == [{"url": "/tidemark"}]  # below which its paths are


def arguments(route: str) -> dict[str, Any]:
    """The schemas of the route's arguments, by name; without the connection, which every route has or is about."""
    what: Any = routes()[route]
    found = {one["name"]: one["schema"] for one in what["parameters"] if one["in"] != "header"}
    assert ("connection" in found) == (not route.startswith("GET /source")), route
    return {name: schema for name, schema in found.items() if name != "connection"}


def options(command: str) -> dict[str, Any]:
    """The choices of the command's options, by the names that arguments have."""
    from tidemark.cli import get_tidemark_cli_commands

    here: Any = get_tidemark_cli_commands()[0]
    for word in command.split()[2:]:
        (here,) = (one for one in here.subcommands if one.name == word)
    found = {arg.flags[-1].removeprefix("--").replace("-", "_"): arg.kwargs.get("choices") for arg in here.args}
    return {name: choices for name, choices in found.items() if name not in ("conn_id", "output", "verbose")}


def names(cell: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", cell))


def test_every_argument_of_a_route_is_an_option_of_its_command_or_the_table_says_where_not(airflow_home: Path) -> None:
    by_route = {route: command for _, route, command in rows("view")}
    told = {route: [names(cell) for cell in cells] for route, *cells in rows("arguments of")}
    assert told.keys() == by_route.keys()
    for route, command in by_route.items():
        asked, given = arguments(route), options(command)
        found = [asked.keys() & given.keys(), asked.keys() - given.keys(), given.keys() - asked.keys()]
        assert told[route] == found, route


@pytest.mark.parametrize(("group", "orders"), [("streams", SortBy), ("objects", ObjectOrder)])
def test_the_orders_of_a_list_are_those_of_its_route(airflow_home: Path, group: str, orders: Any) -> None:
    assert [*options(f"airflow tidemark {group} list")["sort"]] == [one.value for one in orders]
    assert arguments(f"GET /{group}")["sort"]["$ref"].rpartition("/")[2] == orders.__name__
