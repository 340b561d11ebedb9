"""The lines between the rooms: by contract, by what each side can be imported without, and by size."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidemark
from tests.architecture.rooms import ROOMS

PACKAGE = Path(tidemark.__file__).parent
REPOSITORY = PACKAGE.parent.parent
MODULES = sorted(PACKAGE.rglob("*.py"))

SPARK_SIDE = ("model", "sql", "lake", "kafka", "jobs", "*.model", "*.planning", "*.sources", "*.driver")
WORKER_SIDE = (
    "control", "hooks", "operators", "sensors", "triggers", "task_groups", "plugins", "links", "lineage",
    "notifications", "model", "sql", "lake", "kafka", "*.model", "*.planning", "*.sources", "*.store", "*.worker",
)  # fmt: skip
STATE = ("tidemark.control", *(f"tidemark.{room}.{floor}" for room in ROOMS for floor in ("store", "worker")))
DRIVERS = tuple(f"tidemark.{room}.driver" for room in ROOMS)
BLOCKED = {
    "spark": (SPARK_SIDE, ("airflow", "sqlalchemy", "alembic", *STATE)),
    "worker": (WORKER_SIDE, ("pyspark", "delta", "tidemark.jobs", *DRIVERS)),
    "lake": (
        ("lake", "kafka", "sql", "model", "*.planning", "*.model"),
        ("airflow", "sqlalchemy", "alembic", "pyspark", "delta"),
    ),
}
READS_A_DATABASE = "tidemark.channels.driver.sources.sql_query"  # of a source, no state; so in pyproject.toml
IMPORT_ALL = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if any(name == root or name.startswith(root + ".") for root in {blocked!r}):
            raise ImportError(f"blocked: {{name}}")

sys.meta_path.insert(0, Blocked())
for module in {modules!r}:
    importlib.import_module(module)
"""
CLOCKS = {"now", "utcnow", "today"}


def test_the_import_contracts_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    kept = subprocess.run([linter, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert kept.returncode == 0, kept.stdout


@pytest.mark.parametrize("side", sorted(BLOCKED))
def test_each_side_can_be_imported_without_the_packages_of_the_other(side: str) -> None:
    rooms, blocked = BLOCKED[side]
    modules = [_dotted(file) for file in MODULES if _place(file) in rooms]
    modules = [name for name in modules if "migrations" not in name and not name.endswith("__main__")]
    modules = [name for name in modules if name != READS_A_DATABASE]
    code = IMPORT_ALL.format(blocked=blocked, modules=modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_file_is_at_most_400_lines_and_a_function_40(file: Path) -> None:
    source = file.read_text()
    assert len(source.splitlines()) <= 400
    long = [
        f"{node.name}: {length}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := _length(node)) > 40
    ]
    assert not long


def test_nouns_and_decisions_ask_no_clock() -> None:
    files = [file for file in MODULES if _place(file) in ("model", "*.model", "*.planning")]
    assert files
    assert not [f"{file}:{call.lineno}" for file in files for call in _clock_calls(file)]


def _place(file: Path) -> str:
    """`*.floor` in a room, else the top package."""
    top, *below = file.relative_to(PACKAGE).with_suffix("").parts
    return f"*.{below[0]}" if top in ROOMS and below[0] != "__init__" else top


def _dotted(file: Path) -> str:
    return ".".join(("tidemark", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body: neither signature nor docstring count as work."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _clock_calls(file: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
            yield node


# Behind Spark Connect there is no JVM of one's own, and Delta's Python API needs a plugin in the server.
NOT_BEHIND_CONNECT = re.compile(r"\bdelta\.tables\b|\bsparkContext\b|\._jvm\b|\._jdf\b|\.rdd\b|\.newSession\(")
WITH_ANOTHER_WAY = {  # each asks `is_remote` first, or runs in the JVM's own process
    "jobs/__main__.py",
    "jobs/spark_work.py",
    "changes/driver/signed_rows.py",
    "client/frame_predicates.py",
    "channels/driver/kernel.py",
    "replication/driver/source_rows.py",
    "warm_spark/keeper.py",
}


def test_jobs_use_nothing_that_a_shared_spark_lacks() -> None:
    users = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if NOT_BEHIND_CONNECT.search(file.read_text(encoding="utf-8"))
        if any(NOT_BEHIND_CONNECT.search(line.partition("#")[0]) for line in _code_of(file))
    }
    assert users == WITH_ANOTHER_WAY


def _code_of(file: Path) -> list[str]:
    """The lines of code, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree).splitlines()
