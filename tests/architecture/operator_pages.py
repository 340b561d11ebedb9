"""What a DAG file can use of the provider, and what the pages in provider/docs/operators say of it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported

__all__ = ["HOME", "PAGES", "ROOT", "Argument", "Page", "anchors", "arguments", "public", "region", "starts_spark"]

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "provider" / "docs" / "operators"
MARKER = re.compile(r"^\s*# \[(START|END) (\S+)\]\s*$")


@dataclass(frozen=True)
class Argument:
    """One row of a page's table of arguments, without its meaning."""

    name: str
    templated: bool
    default: str

    def row(self, meaning: str = "…") -> str:
        return f"| `{self.name}` | {'yes' if self.templated else 'no'} | {self.default} | {meaning} |"


@dataclass(frozen=True)
class Page:
    """A page in Markdown, taken apart."""

    path: Path
    text: str

    @classmethod
    def of(cls, name: str) -> Page:
        """The page of an operator, or an empty one at the place where it should be."""
        path = PAGES / f"{kebab(name)}.md"
        return cls(path, path.read_text(encoding="utf-8") if path.exists() else "")

    def section(self, heading: str) -> str:
        return self.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]

    def rows(self, heading: str) -> list[list[str]]:
        """The cells of the section's table, without its first two lines."""
        lines = [line for line in self.section(heading).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]

    @property
    def shown(self) -> list[tuple[str, str, str]]:
        """(region, file, code) of every block of Python; region and file are empty where the page does not say."""
        found = re.findall(r"(?:<!-- region (\S+) of (\S+) -->\n)?```python\n(.*?)```", self.text, re.DOTALL)
        return [(name, file, code) for name, file, code in found]

    @property
    def links(self) -> list[str]:
        return [link for link in re.findall(r"\]\(([^)\s]+)\)", self.text) if "://" not in link]

    @property
    def errors(self) -> list[str]:
        """Names in the first column of its tables of errors."""
        tables = re.findall(r"^\| error \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
        return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def kebab(name: str) -> str:
    """`ConsumeStreamOperator` → `consume-stream-operator`, `stream_transaction` → `stream-transaction`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()


def public() -> dict[str, Any]:
    """Every operator and sensor of the modules that Airflow is told of, every notifier, every task group, by name."""
    return {one.__name__: one for one in (*_operators(), *_notifiers(), *_groups())}


def _operators() -> Iterator[type[Any]]:
    from airflow.sdk import BaseOperator

    from tidemark.provider_info import get_provider_info

    info: Any = get_provider_info()
    for module in (name for kind in ("operators", "sensors") for room in info[kind] for name in room["python-modules"]):
        offered = (getattr(import_module(module), name) for name in import_module(module).__all__)
        yield from (one for one in offered if isinstance(one, type) and issubclass(one, BaseOperator))


def _notifiers() -> Iterator[type[Any]]:
    from tidemark.provider_info import get_provider_info

    info: Any = get_provider_info()
    for dotted in info["notifications"]:
        module, _, name = dotted.rpartition(".")
        yield getattr(import_module(module), name)


def _groups() -> Iterator[Callable[..., Any]]:
    import tidemark.task_groups

    for found in iter_modules(tidemark.task_groups.__path__, "tidemark.task_groups."):
        module = import_module(found.name)
        yield from (getattr(module, name) for name in module.__all__)


def arguments(one: Any) -> list[Argument]:
    """The arguments of a class or of a task group's function that are ours: its own first, then those of our bases."""
    found: dict[str, Argument] = {}
    for function in _ours(one):
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
                default = "required" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
                argument = Argument(parameter.name, parameter.name in templated(one), default.replace("'", '"'))
                found.setdefault(parameter.name, argument)
    return list(found.values())


def _ours(one: Any) -> list[Callable[..., Any]]:
    if not isinstance(one, type):
        return [inspect.unwrap(one)]
    ours = [kind for kind in one.__mro__ if kind.__module__.startswith("tidemark.")]
    return [inspect.unwrap(vars(kind)["__init__"]) for kind in ours if "__init__" in vars(kind)]


def templated(one: Any) -> set[str]:
    """The arguments that end in a template field: of the class itself, or of an operator that the group makes."""
    return {name for function in _ours(one) for name in _into_fields(function, one)}


def _into_fields(function: Callable[..., Any], one: Any) -> Iterator[str]:
    fields = set(getattr(one, "template_fields", ()))
    module = inspect.getmodule(function)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            if node.targets[0].attr in fields and isinstance(node.value, ast.Name):
                yield node.value.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not isinstance(one, type):
            made = set(getattr(getattr(module, node.func.id, None), "template_fields", ()))
            yield from (k.value.id for k in node.keywords if k.arg in made and isinstance(k.value, ast.Name))


def starts_spark(one: Any) -> bool:
    """Whether it, or a task that it makes, makes a job."""
    if isinstance(one, type):
        return any(call in inspect.getsource(one) for call in ("self.runtime(", "SparkJob("))
    module = inspect.getmodule(inspect.unwrap(one))
    assert isinstance(module, ModuleType)
    return any(starts_spark(kind) for kind in vars(module).values() if getattr(kind, "template_fields", None))


def region(file: Path, name: str) -> str:
    """The lines of the file between the markers of that name, moved to the left, without markers of other regions."""
    lines = file.read_text(encoding="utf-8").splitlines()
    marks = {found.groups(): number for number, line in enumerate(lines) if (found := MARKER.match(line))}
    start, end = marks["START", name], marks["END", name]
    inside = [line for line in lines[start + 1 : end] if not MARKER.match(line)]
    return textwrap.dedent("\n".join(inside)).strip() + "\n"


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may end in."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
