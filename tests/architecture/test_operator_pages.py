"""Every operator, sensor, notifier and task group has a page that is true: its code runs, its arguments are these."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tidemark.errors
from tests.architecture.operator_pages import (
    PAGES,
    ROOT,
    Page,
    arguments,
    assets,
    documented,
    kind,
    public,
    region,
    starts_spark,
    with_arguments,
)

pytestmark = pytest.mark.airflow

PUBLIC = public()
INDEX = Page.of("index")
EXAMPLES = ROOT / "tests" / "airflow"
SECTIONS = ["When to use it", "Example", "Arguments", "What it returns", "Run again", "Errors", "See also"]
TABLES = INDEX.rows_under("| you want to | use | kind | starts Spark | defers |")
ERRORS = {name for name in tidemark.errors.__all__ if isinstance(getattr(tidemark.errors, name), type)}
HOW_TO_WRITE_ONE = """
{name} is public, and {page} is not there. Write it after the pattern of consume-stream-operator.md beside it:
1. Put a DAG that uses it into tests/airflow/examples, between `# [START name]` and `# [END name]`, and run that DAG in
   tests/airflow/test_examples.py.
2. Begin the page with `# {name}`, then these sections, each `## …`: {sections}.
3. Show the region under `<!-- region name of tests/airflow/examples/file.py -->`, as a block of python.
4. Describe each argument by `:param` in the docstring. Put `<!-- arguments, by make operator-pages -->` and
   `<!-- end of arguments -->` below `## Arguments`; `make operator-pages` writes this table between them:
{rows}
5. Add a row for it to the table of its subject in index.md, in the order of use:
   `| you want to … | [{name}]({file}) | {kind} | starts Spark: no, or when | defers: no or yes |`."""

WRITERS = {"ConsumeStreamOperator", "ReplayWindowOperator"}  # the words of a write are arguments of the task

every_name = pytest.mark.parametrize("name", sorted(PUBLIC))
every_page = pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda path: path.stem)


def written(name: str) -> Page:
    page = Page.of(name)
    if not page.text:
        pytest.skip("test_everything_public_has_a_page says so")
    return page


@every_name
def test_everything_public_has_a_page(name: str) -> None:
    page = Page.of(name)
    rows = "\n".join(argument.row() for argument in arguments(PUBLIC[name]))
    if not page.text:
        place = page.path.relative_to(ROOT)
        what = {"name": name, "page": place, "file": page.path.name, "rows": rows, "sections": ", ".join(SECTIONS)}
        what["kind"] = kind(PUBLIC[name])
        pytest.fail(HOW_TO_WRITE_ONE.format(**what), pytrace=False)
    assert page.text.startswith(f"# {name}\n")
    assert [heading for heading in SECTIONS if not page.section(heading).strip()] == []


def test_every_page_is_of_something_public() -> None:
    pages = {path.name for path in PAGES.glob("*.md")} - {"index.md"}
    assert pages <= {Page.of(name).path.name for name in PUBLIC}


@every_name
def test_a_page_says_where_to_import_from(name: str) -> None:
    assert f"`from {PUBLIC[name].__module__} import {name}`" in written(name).text


@every_name
def test_the_code_of_a_page_is_the_region_of_the_file_that_it_names(name: str) -> None:
    shown = written(name).shown
    assert shown, "show the DAG of a test"
    for marker, file, code in shown:
        assert file, f"above this block there is no <!-- region … of … -->:\n{code}"
        assert (ROOT / file).is_relative_to(EXAMPLES), "show a DAG that tests/airflow runs"
        assert code == region(ROOT / file, marker), f"put the region {marker} of {file} there as it stands"
        assert name in code or _made_by(name, code), f"the region {marker} does not use {name}"


def _made_by(name: str, code: str) -> bool:
    """The tasks that a group makes around its body are not named in a DAG file."""
    return "stream_transaction(" in code and name.endswith("TransactionOperator")


@pytest.mark.parametrize("path", sorted((EXAMPLES / "examples").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_a_test_runs_every_dag_that_is_shown(path: Path) -> None:
    tests = (EXAMPLES / "test_examples.py").read_text(encoding="utf-8")
    made = re.findall(r"^(?:with DAG\(.*)?\) as (\w+):$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert made
    assert [dag for dag in made if f"({dag}" not in tests] == [], "tests/airflow/test_examples.py does not run it"


@every_name
def test_the_table_has_exactly_the_arguments(name: str) -> None:
    rows = [row[:3] for row in written(name).rows("Arguments")]
    expected = [argument.row() for argument in arguments(PUBLIC[name])]
    wanted = {tuple(cell.strip() for cell in row.split("|")[1:4]) for row in expected}
    lines = "\n".join(expected)
    assert {tuple(row) for row in rows} == wanted, f"the table of arguments should have these rows:\n{lines}"
    assert len(rows) == len(wanted)


@every_name
def test_the_docstring_describes_every_argument_and_nothing_else(name: str) -> None:
    said, needed = documented(PUBLIC[name]), {argument.name: argument for argument in arguments(PUBLIC[name])}
    assert [argument for argument in needed if argument not in said] == [], "add :param to the docstring"
    assert [argument for argument in said if argument not in needed] == []
    marked = {argument for argument, meaning in said.items() if meaning.endswith("(templated)")}
    assert marked == {argument.name for argument in needed.values() if argument.templated}


@every_name
def test_the_table_is_the_one_of_the_docstring(name: str) -> None:
    page = written(name)
    assert page.text.count("<!-- arguments, by make operator-pages -->") == 1
    assert page.text == with_arguments(name, PUBLIC[name]), "run `make operator-pages`"


@pytest.mark.parametrize("name", sorted({name for name, one in PUBLIC.items() if isinstance(one, type)} - WRITERS))
def test_a_class_has_at_most_eight_arguments_of_its_own(name: str) -> None:
    given = inspect.signature(PUBLIC[name].__init__).parameters.values()
    own = [one.name for one in given if one.name not in ("self", "conn_id") and one.kind is not one.VAR_KEYWORD]
    assert len(own) <= 8


@every_page
def test_every_error_that_a_page_names_exists(path: Path) -> None:
    page = Page(path, path.read_text(encoding="utf-8"))
    assert page.errors
    assert [error for error in page.errors if error not in ERRORS] == []


@every_name
def test_a_page_names_the_errors_of_the_docstring(name: str) -> None:
    words = set(str(PUBLIC[name].__doc__).replace(",", " ").replace(".", " ").replace(";", " ").split())
    named = {*written(name).errors, *INDEX.errors}
    assert [error for error in sorted(ERRORS & words) if error not in named] == []


@every_name
def test_one_table_of_the_index_has_it_and_says_its_kind_and_whether_it_starts_spark_and_defers(name: str) -> None:
    link = f"[{name}]({Page.of(name).path.name})"
    rows = [row for row in TABLES if row[1] == link]
    assert len(rows) == 1, f"a table of index.md should have a row, and only one: | … | {link} | …"
    wish, _, said, spark, defers = rows[0]
    assert wish
    assert said == kind(PUBLIC[name])
    assert (spark != "no") == starts_spark(PUBLIC[name])
    assert (defers != "no") == any(argument.name == "deferrable" for argument in arguments(PUBLIC[name]))


def test_the_index_has_each_asset_once_and_nothing_else_besides() -> None:
    named = [(re.findall(r"^\[(\w+)\]\(\S+\)$", row[1]), row[2]) for row in TABLES]
    others = [(names, said) for names, said in named if not set(names) & set(PUBLIC)]
    assert sorted(others) == sorted(([name], said) for name, said in assets().items())


def test_every_table_of_the_index_has_a_heading_of_its_own_before_the_shared_facts() -> None:
    tables = INDEX.text.partition("<!-- navigation -->\n")[2].partition("<!-- end of navigation -->")[0]
    headings = re.findall(r"^## (.*)$", tables, re.MULTILINE)
    rows = [INDEX.rows(heading) for heading in headings]
    assert [row for table in rows for row in table] == TABLES
    assert all(rows)


def test_the_readme_leads_to_the_index() -> None:
    assert "(provider/docs/operators/index.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
