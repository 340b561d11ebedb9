"""The docs build as a site without a warning, and each of their blocks can be used as it is."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlglot
from sqlglot import exp

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tests.architecture.anchors import LEVELS_OF_THE_SITE, lost_links
from tests.architecture.prose import PARSER
from tidemark.clustering.planning.sql import parse_clustering_sql
from tidemark.pipes.planning.sql import parse_pipe_sql
from tidemark.pipes.planning.sql_views import find_load_histories

assert HOME
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "provider" / "docs"
PAGES = [*ROOT.glob("*.md"), ROOT / "provider" / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
RESULTS = ROOT / "tests" / "benchmarks" / "RESULTS.md"
KINDS = ["Tutorials", "How-to guides", "Reference", "Explanation"]
LANGUAGES = {"python", "sql", "postgresql", "bash", "ini", "json", "yaml", "text", "{include}"}
FENCE = re.compile(r"^```(\S*).*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n(?:\n(?= {4}))?)+")
OF_THE_SERVER = (
    "CREATE ROLE",
    "CREATE DATABASE",
    "CREATE PUBLICATION",
    "ALTER SCHEMA",
    "ALTER DEFAULT PRIVILEGES",
    "GRANT",
)  # fmt: skip - not sqlglot's
OURS = re.compile(r"\s*(CREATE|ALTER|DROP|SHOW|DESC)\b.*\b(STREAMS?|EXTERNAL TABLE)\b", re.IGNORECASE)

SINCE = re.compile(r"\*\*Since (\[decision \d+\]\(\S+\)|\d{4}-\d\d-\d\d):\*\* ")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def fences(page: Path, language: str) -> list[str]:
    return [code for found, code in FENCE.findall(TEXTS[page]) if found == language]


def shell(page: Path) -> Iterator[str]:
    """Lines that a reader types, and code within the text, also if it is broken over two lines."""
    for block in (*fences(page, "bash"), *INDENTED.findall(FENCE.sub("", TEXTS[page]))):
        yield from (line.strip() for line in block.splitlines())
    inline = (token for token in PARSER.parse(FENCE.sub("", TEXTS[page])) if token.type == "inline")
    yield from (code.content for token in inline for code in token.children or () if code.type == "code_inline")


class Loaded(HTMLParser):
    """What a browser fetches for a page, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a":
            self.links.append(found.get("href") or "")
        elif tag in ("script", "img", "source", "iframe"):
            self.fetched.append(found.get("src") or "")
        elif tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.fetched.append(found.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The docs, built as `make docs` does, with every connection refused."""
    made = tmp_path_factory.mktemp("site")
    offline = {**os.environ, "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    options = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(made / "doctrees")]
    build = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(made / "html")]
    done = subprocess.run(build, capture_output=True, text=True, check=False, timeout=300, env=offline)
    assert done.returncode == 0, done.stderr
    return made / "html"


def test_the_site_builds_without_a_warning_and_its_navigation_has_the_four_kinds(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    sidebar = text.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    assert re.findall(r'toctree-l1[^>]*><a[^>]*href="[^"]*">([^<]*)</a>', sidebar) == KINDS
    assert len(list(site.rglob("*.html"))) > len(list(DOCS.rglob("*.md")))
    assert "ConsumeStreamOperator" in (site / "searchindex.js").read_text(encoding="utf-8")


def test_a_page_of_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert [place for place in loaded.fetched if "//" in place] == [], page
        assert [link for link in loaded.links if link.startswith("http://")] == [], page
    styles = "".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", styles) == []


@every_page
def test_links_to_elsewhere_are_secure_and_well_formed(page: Path) -> None:
    for link in re.findall(r"\]\(((?:\w+:)?//[^)]*)\)", TEXTS[page]):
        parts = urlsplit(link)
        assert parts.scheme == "https", link
        assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", parts.netloc), link
        assert not re.search(r"\s", link), link


@pytest.mark.parametrize("page", [*PAGES, RESULTS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    assert lost_links(page) == []


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# A\n\n## The `code`, a [link](page.md#a) & 2\n\n## Same\n\n## Same\n\n```text\n# Block\n```\n\n"
    good = ["#the-code-a-link--2", "page.md#same", "page.md#same-1", "page.md"]
    bad = ["#block", "page.md#same-2", "other.md", "../README.md#limits"]
    page.write_text(text + " ".join(f"[x]({link})" for link in (*good, *bad)), encoding="utf-8")
    assert lost_links(page) == bad


def test_the_levels_of_headings_with_anchors_are_those_of_the_site() -> None:
    assert f"myst_heading_anchors = {LEVELS_OF_THE_SITE}\n" in (DOCS / "conf.py").read_text(encoding="utf-8")


@every_page
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {language for language, _ in FENCE.findall(TEXTS[page])} <= LANGUAGES


@pytest.mark.airflow
@every_page
def test_python_compiles_and_what_it_imports_of_tidemark_is_there(page: Path) -> None:
    for code in fences(page, "python"):
        tree = ast.parse(code)
        compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidemark":
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
            elif isinstance(node, ast.Import):
                ours = [name.name for name in node.names if name.name.split(".")[0] == "tidemark"]
                assert [name for name in ours if importlib.util.find_spec(name) is None] == []


def statements(page: Path) -> Iterator[str]:
    """SQL of blocks, and of calls in Python that stands there in full."""
    yield from (*fences(page, "sql"), *fences(page, "postgresql"))
    for call in (node for code in fences(page, "python") for node in ast.walk(ast.parse(code))):
        if isinstance(call, ast.Call):
            texts: list[Any] = [keyword.value for keyword in call.keywords if keyword.arg == "sql"]
            texts += call.args[:1] if isinstance(call.func, ast.Attribute) and call.func.attr == "sql" else []
            found = [text.value for text in texts if isinstance(text, ast.Constant)]
            yield from (text for text in found if isinstance(text, str) and not text.endswith(".sql"))


@pytest.mark.airflow
@every_page
def test_sql_is_understood(page: Path) -> None:
    from tidemark.operators.stream_sql import StreamSQLOperator

    for text in statements(page):
        if OURS.match(text):
            StreamSQLOperator(task_id="shown", sql=text)  # reads it as a DAG file does
        else:
            assert _of_loads(text) or parse_clustering_sql(text) is not None or _foreign(text), text


def _of_loads(text: str) -> bool:
    """Whether each statement is one of loads, stages, formats and pipes; wrong ones raise. A template is a path."""
    statements = [one for one in re.sub(r"\{\{.+?\}\}", "/data", text).split(";\n") if one.strip()]
    return all(parse_pipe_sql(one) is not None or find_load_histories(one) for one in statements)


def _foreign(text: str) -> bool:
    """Whether Spark's or PostgreSQL's grammar has each statement, as far as sqlglot knows it."""
    for dialect in ("spark", "postgres"):
        try:
            parsed = sqlglot.parse(text, read=dialect)
        except sqlglot.ParseError:
            continue
        if all(one and (not isinstance(one, exp.Command) or one.sql().startswith(OF_THE_SERVER)) for one in parsed):
            return True
    return False


@every_page
def test_make_targets_that_are_typed_exist(page: Path) -> None:
    typed = [line.split("#")[0].split() for line in shell(page) if re.match(r"make( |$)", line)]
    words = [word for line in typed for word in line[1:] if re.fullmatch(r"[a-z][a-z-]*", word)]
    assert [word for word in words if word not in TARGETS] == []


@pytest.mark.airflow
@every_page
def test_commands_of_airflow_tidemark_exist_with_their_options(page: Path) -> None:
    for line in shell(page):
        if line.startswith("airflow tidemark "):
            _require_command(line.partition("#")[0])


def _require_command(line: str) -> None:
    from tidemark.cli import get_tidemark_cli_commands

    commands: Any = get_tidemark_cli_commands()
    words = [word for word in shlex.split(line.replace("\\|", "|"))[1:] if word not in ("|", "…")]
    options: set[str] = set()
    for word in words:
        known = {command.name: command for command in commands}
        if word.startswith("--"):
            assert word in options, f"{line}: no option {word} among {sorted(options)}"
        elif word in known:
            found = known[word]
            commands = getattr(found, "subcommands", commands)
            options |= {flag for one in getattr(found, "args", ()) for flag in one.flags}
        else:
            assert options, f"{line}: no command {word} among {sorted(known)}"


def test_the_pictures_are_those_that_the_script_draws() -> None:
    spec = importlib.util.spec_from_file_location("draw", DOCS / "images" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    draw = importlib.util.module_from_spec(spec)
    sys.modules["draw"] = draw
    spec.loader.exec_module(draw)
    drawn = {f"{picture.name}.svg": picture.svg() for picture in (draw.flow(), draw.architecture())}
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in (DOCS / "images").glob("*.svg")}
    shown = "".join(TEXTS.values())
    assert [name for name in drawn if f"images/{name})" not in shown] == []


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("0*.md")), ids=lambda page: page.stem)
def test_a_decision_has_the_form_of_all(page: Path) -> None:
    text = TEXTS[page]
    assert re.match(
        rf"# {int(page.stem[:4])}\. .+\n\nDate: \d{{4}}-\d\d-\d\d\. Status: [a-z].*\.\n\n## Context\n", text
    )
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Alternatives", "Consequences"]


def test_the_index_of_decisions_has_the_title_the_date_and_the_status_of_each() -> None:
    index = re.findall(r"^\| (\d+ \| \[.+\]\(.+\) \| .+) \|$", TEXTS[DOCS / "decisions" / "index.md"], re.MULTILINE)
    assert index == [_row_of_decision(page) for page in sorted((DOCS / "decisions").glob("0*.md"))]


def _row_of_decision(page: Path) -> str:
    found = re.match(r"# (\d+)\. (.+)\n\nDate: (\S+)\. Status: (.+)\.\n", TEXTS[page])
    assert found, page
    status = re.sub(r"\[(\d+)\]\(\S+\)", r"\1", found[4])
    return f"{found[1]} | [{found[2]}]({page.name}) | {found[3]} | {status}"


def test_a_decision_is_superseded_by_a_later_one_whose_note_it_has() -> None:
    for page in sorted((DOCS / "decisions").glob("0*.md")):
        status = TEXTS[page].partition("Status: ")[2].partition(".\n")[0]
        later = re.findall(r"\[\d+\]\((\d{4}\S+)\)", status)
        assert len(later) == status.count("superseded"), page
        assert all(name > page.name and (page.parent / name).exists() for name in later), page
        notes = [line for line in TEXTS[page].splitlines() if line.startswith("**Since ")]
        assert [name for name in later if not any(name in note for note in notes)] == [], page
        assert [note for note in notes if not SINCE.match(note)] == [], page


def test_the_glossary_has_each_word_once_in_the_order_of_the_alphabet() -> None:
    words = re.findall(r"^\| (.+?) \| ", TEXTS[DOCS / "glossary.md"], re.MULTILINE)[2:]
    assert words == sorted(set(words), key=str.casefold)


def test_a_recipe_names_tests_that_are_there() -> None:
    for page in (DOCS / "recipes").glob("*.md"):
        named = re.findall(r"`(tests/[\w/]+\.py|tests/[\w/]+|\.ci/[\w-]+)`", TEXTS[page])
        assert [name for name in named if not (ROOT / name).exists()] == [], page
