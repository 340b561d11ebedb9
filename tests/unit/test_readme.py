"""Targets and names in the README and the docs exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), ROOT / "provider" / "CHANGELOG.md", *sorted((ROOT / "provider" / "docs").rglob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def by_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_make_targets_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"(?:`|^ {4})make ([a-z][a-z-]*)", TEXTS[page], re.MULTILINE))
    assert named <= TARGETS


def test_the_readme_names_the_test_command_and_ci_runs_it() -> None:
    assert "make test" in TEXTS[ROOT / "README.md"]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("test")


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "provider/docs/tutorials/your-own-table.md"])
def test_the_pages_offer_the_versions_of_python_that_were_run(page: str) -> None:
    ran = re.findall(r"^\| (3\.\d+) \|", TEXTS[ROOT / "README.md"], re.MULTILINE)
    offered = re.search(r"need .*?Python ((?:3\.\d+(?:, | or )?)+)", TEXTS[ROOT / page])
    assert offered is not None
    assert re.findall(r"3\.\d+", offered[1]) == ran
    classifiers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r"Python :: (3\.\d+)", classifiers) == ran


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_python_in_the_pages_parses_and_its_imports_are_there(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", TEXTS[page], re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidemark":
                module = ROOT / "provider" / str(node.module).replace(".", "/")
                file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
                text = file.read_text(encoding="utf-8")
                assert [name.name for name in node.names if name.name not in text] == []


def test_every_error_that_the_docs_name_is_in_the_error_tree() -> None:
    page = TEXTS[ROOT / "provider" / "docs" / "how-to" / "consume-a-stream.md"]
    table = page.partition("| error | what to do |")[2].partition("\n\n")[0]
    named = [
        name
        for row in table.splitlines()
        for name in re.findall(r"`([A-Z]\w+)`", row.split("|")[1:2][0] if "|" in row else "")
    ]
    room = (ROOT / "provider" / "tidemark" / "errors").glob("*.py")
    errors = "".join(file.read_text(encoding="utf-8") for file in room)
    assert named
    assert [name for name in named if f"class {name}(" not in errors] == []
