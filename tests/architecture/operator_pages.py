"""What a DAG file can use of the provider, and what the pages in provider/docs/operators say of it.

`make operator-pages` writes the table of arguments of each page anew: names, defaults and templates from the signature,
meanings from the docstring's `:param`. In a meaning the name of an operator becomes a link to its page, and the heading
of a how-to page in double quotes a link to that heading.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import tidemark.errors
from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tests.architecture.anchors import slug

__all__ = [
    "HOME",
    "PAGES",
    "ROOT",
    "Argument",
    "Page",
    "arguments",
    "assets",
    "documented",
    "in_markdown",
    "kind",
    "public",
    "region",
    "starts_spark",
    "with_arguments",
]

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "provider" / "docs" / "operators"
MARKER = re.compile(r"^\s*# \[(START|END) (\S+)\]\s*$")
TABLE = re.compile(r"<!-- arguments, by make operator-pages -->\n.*?<!-- end of arguments -->", re.DOTALL)


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
        return [_cells(line) for line in lines[2:]]

    def rows_under(self, head: str) -> list[list[str]]:
        """The cells of all tables whose first line is `head`, in the order of the page."""
        tables = re.findall(rf"^{re.escape(head)}\n\|[-| ]+\|\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        return [_cells(line) for table in tables for line in table.splitlines()]

    @property
    def shown(self) -> list[tuple[str, str, str]]:
        """(region, file, code) of every block of Python; region and file are empty where the page does not say."""
        found = re.findall(r"(?:<!-- region (\S+) of (\S+) -->\n)?```python\n(.*?)```", self.text, re.DOTALL)
        return [(name, file, code) for name, file, code in found]

    @property
    def errors(self) -> list[str]:
        """Names in the first column of its tables of errors."""
        tables = re.findall(r"^\| error \|.*\n\|[-| ]+\|\n((?:\|.*\n)+)", self.text, re.MULTILINE)
        cells = [row.split("|")[1] for table in tables for row in table.splitlines()]
        return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


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


def kind(one: Any) -> str:
    """The word for it in the column `kind` of the tables of index.md."""
    from airflow.sdk import BaseOperator, BaseSensorOperator

    if not isinstance(one, type):
        return "task group"
    if issubclass(one, BaseSensorOperator):
        return "sensor"
    return "operator" if issubclass(one, BaseOperator) else "notifier"


def assets() -> dict[str, str]:
    """The name of each function that makes an asset → its word in that column."""
    import tidemark.assets

    names = [name for name in tidemark.assets.__all__ if name.endswith("_asset")]
    made = {name: inspect.getsource(getattr(tidemark.assets, name)) for name in names}
    return {name: "asset with a watcher" if "_watched(" in source else "asset" for name, source in made.items()}


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


def documented(one: Any) -> dict[str, str]:
    """What the docstrings say of each argument, as one line: the class's own first, then those of our bases."""
    kinds = [kind for kind in getattr(one, "__mro__", [one]) if kind.__module__.startswith("tidemark.")]
    found: dict[str, str] = {}
    for kind in kinds:
        text = inspect.cleandoc(kind.__doc__ or "")
        for name, meaning in re.findall(r"^:param (\w+): (.*?)(?=^\S|\n\n|\Z)", text, re.MULTILINE | re.DOTALL):
            found.setdefault(name, " ".join(meaning.split()))
    return found


def with_arguments(name: str, one: Any) -> str:
    """The page with its table of arguments as signature and docstrings have it; one without markers stays as it is."""
    meanings = documented(one)
    rows = [found.row(_meaning(meanings.get(found.name, "…"), name)) for found in arguments(one)]
    head = ["| argument | templated | default | meaning |", "| --- | --- | --- | --- |"]
    table = "\n".join(["<!-- arguments, by make operator-pages -->", *head, *rows, "", "<!-- end of arguments -->"])
    return TABLE.sub(lambda _: table, Page.of(name).text)


def _meaning(meaning: str, of: str) -> str:
    plain = meaning.removesuffix("(templated)").strip().removesuffix(".").replace("|", "\\|")
    return in_markdown(plain, of)


def in_markdown(text: str, of: str, folder: str = "") -> str:
    """A text of a docstring with code and links, for the page of `of`; text between backticks stays as it is.

    `folder`: the way from that page to those of the operators.
    """
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else _linked(piece, of, folder) for piece in pieces)


def _linked(text: str, of: str, folder: str) -> str:
    headings = _headings()
    text = re.sub(r'"([^"]+)"', lambda quoted: headings.get(quoted[1], quoted[0]), text)
    pieces = re.split(r"(\[[^\]]*\]\([^)]*\))", text)
    return "".join(piece if piece.startswith("[") else re.sub(r"\b\w+\b", _word(of, folder), piece) for piece in pieces)


def _word(of: str, folder: str) -> Callable[[re.Match[str]], str]:
    def marked(word: re.Match[str]) -> str:
        if word[0] in ("None", "True", "False") or word[0] in tidemark.errors.__all__:
            return f"`{word[0]}`"
        return f"[{word[0]}]({folder}{kebab(word[0])}.md)" if word[0] != of and word[0] in _names() else word[0]

    return marked


@cache
def _names() -> set[str]:
    """Operators, sensors, notifiers: task groups have names that are words."""
    return {name for name, one in public().items() if isinstance(one, type)}


@cache
def _headings() -> dict[str, str]:
    """Each heading of the how-to pages that stands once → a link to it."""
    found: dict[str, list[str]] = {}
    for path in sorted(PAGES.with_name("how-to").glob("*.md")):
        for level, title in re.findall(r"^(##?) (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            anchor = f"#{slug(title)}" if level == "##" else ""
            found.setdefault(title, []).append(f"[{title}](../how-to/{path.name}{anchor})")
    return {title: links[0] for title, links in found.items() if len(links) == 1}


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
        own = [kind for kind in one.__mro__ if kind in public().values()]
        return any(call in inspect.getsource(kind) for kind in own for call in ("self.runtime", "SparkJob("))
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


if __name__ == "__main__":
    for _name, _one in public().items():
        if (_page := Page.of(_name)).text != (_text := with_arguments(_name, _one)):
            _page.path.write_text(_text, encoding="utf-8")
            print(_page.path.relative_to(ROOT))
