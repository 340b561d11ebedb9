"""The public members of the Python client, and the page of them, provider/docs/reference/client.md.

`make client-page` writes the page's regions anew. The comment that begins a region names its members, in the order of
the page: `tx` is a class, `tx.commit` a method. Signatures and meanings come from the source. The classes that these
signatures name follow behind the members, each once on the page.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import tidemark.client
from tests.architecture.anchors import slug
from tests.architecture.operator_pages import ROOT, in_markdown
from tidemark.channels.driver.channel import Channel
from tidemark.channels.driver.client import IngestClient
from tidemark.client.external_tables import ExternalTables
from tidemark.client.ingest_service import ServiceChannel, ServiceClient
from tidemark.client.query_result import QueryResult

__all__ = ["PAGE", "Entry", "Source", "members", "named", "public", "regions", "values", "with_members"]

PAGE = ROOT / "provider" / "docs" / "reference" / "client.md"
REGION = re.compile(r"<!-- client: ([^>]*?), by make client-page -->\n.*?<!-- end of client -->", re.DOTALL)
WIDTH = 100
HANDLES: dict[str, type[Any]] = {
    "lake": tidemark.client.Lake,
    "tx": tidemark.client.LakeTransaction,
    "client": IngestClient,
    "channel": Channel,
    "service": ServiceClient,
    "service_channel": ServiceChannel,
    "external_tables": ExternalTables,
    "result": QueryResult,
}
"""The objects that a user gets from a call and calls in turn, by their names on the page."""

BETWEEN_MODULES = {
    "lake.add_search_targets": "of SQL that the client has parsed",
    "lake.drop_search_targets": "of SQL that the client has parsed",
    "lake.estimate_search_targets": "of SQL that the client has parsed",
    "lake.searched": "views read their tables by it",
    "lake.table_search": "what the client knows of search paths, for its statements",
    "channel.spec": "how rows are converted",
    "channel.is_spent": "the client forgets it",
    "client.shorten_log_at": "histories and quarantines, of upkeep",
    "client.flush_soon": "the service makes room by it",
    "service.ask": "a request of its channels",
}
"""Members that other modules of the client need, and users do not, each with its use."""


@dataclass(frozen=True)
class Source:
    """A name of our source: the module that defines it, and its node there."""

    module: str
    node: ast.stmt


@dataclass(frozen=True)
class Entry:
    """A member of the page: `connect`, a handle or `handle.method`."""

    name: str
    source: Source

    @property
    def function(self) -> ast.FunctionDef | None:
        return self.source.node if isinstance(self.source.node, ast.FunctionDef) else None


def public() -> list[str]:
    """The members that the page should have: `connect`, each handle and its methods and properties."""
    found = ["connect"]
    for handle in HANDLES:
        found += [handle, *(f"{handle}.{name}" for name in members(HANDLES[handle]))]
    return [name for name in found if name not in BETWEEN_MODULES]


def members(cls: type[Any]) -> list[str]:
    """Public methods and properties of a class and of our bases."""
    ours = [kind for kind in cls.__mro__ if kind.__module__.startswith("tidemark.")]
    return list(dict.fromkeys(name for kind in ours for name in vars(kind) if not name.startswith("_")))


def entry(name: str) -> Entry:
    """The source of a member. Raises AssertionError for a name that is none."""
    handle, _, member = name.rpartition(".")
    if name == "connect":
        return Entry(name, _definition("tidemark.client", name))
    if not handle:
        assert name in HANDLES, f"{name} is no object of the client: {sorted(HANDLES)}"
        return Entry(name, _source_of(HANDLES[name]))
    owner = next((kind for kind in HANDLES[handle].__mro__ if member in vars(kind)), None)
    assert owner is not None, f"{name} is no member of {HANDLES[handle].__name__}"
    nodes = (node for node in _body(owner) if getattr(node, "name", "") == member)
    return Entry(name, Source(owner.__module__, next(nodes)))


def regions(text: str) -> list[list[str]]:
    """The members that each region of the page names."""
    return [found.split() for found in REGION.findall(text)]


def with_members(text: str) -> str:
    """The page with its regions as the source has them. A class is shown in the first region that needs it."""
    shown: set[tuple[str, str]] = set()

    def written(found: re.Match[str]) -> str:
        entries = [entry(name) for name in found[1].split()]
        needed = [one for one in values(entries) if (one.module, _name(one.node)) not in shown]
        shown.update((one.module, _name(one.node)) for one in needed)
        parts = [*(_shown(one) for one in entries), *(_value(one) for one in needed)]
        head = f"<!-- client: {found[1]}, by make client-page -->"
        return "\n\n".join([head, *parts, "<!-- end of client -->"])

    return REGION.sub(written, text)


def values(entries: Sequence[Entry]) -> list[Source]:
    """The classes and names of types in the signatures, in that order; handles have entries of their own."""
    found: dict[tuple[str, str], Source] = {}
    for one in entries:
        if one.function is not None:
            for source in named(one.function, one.source.module):
                found.setdefault((source.module, _name(source.node)), source)
                for inner in named(source.node, source.module) if isinstance(source.node, ast.Assign) else ():
                    found.setdefault((inner.module, _name(inner.node)), inner)
    return [source for source in found.values() if _name(source.node) not in _handles()]


def named(node: ast.stmt, module: str) -> Iterator[Source]:
    """Our classes and names of types that a signature has, or the value of such a name."""
    if isinstance(node, ast.FunctionDef):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        types = [*(one.annotation for one in given), node.returns]
    else:
        types = [getattr(node, "value", None)]
    texts = [ast.unparse(one) for one in types if one is not None]
    for name in dict.fromkeys(word for text in texts for word in re.findall(r"[A-Za-z]\w*", text)):
        source = _find(module, name)
        if source is not None:
            yield source


def _handles() -> set[str]:
    return {cls.__name__ for cls in HANDLES.values()}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def _definition(module: str, name: str) -> Source:
    source = _find(module, name)
    assert source is not None, f"{module} has no {name}"
    return source


@cache
def _find(module: str, name: str) -> Source | None:
    """The definition of a name that a module has or imports, for type checkers too; None for a foreign one."""
    for node in _tree(module).body:
        if _name(node) == name:
            return Source(module, node)
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidemark"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _find(node.module or "", alias.name)
    return None


def _source_of(cls: type[Any]) -> Source:
    return _definition(cls.__module__, cls.__name__)


def _name(node: ast.AST) -> str:
    """The name of a class or a function, or of a type that an assignment names."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return str(getattr(node, "name", ""))


def _body(cls: type[Any]) -> list[ast.stmt]:
    node = _source_of(cls).node
    assert isinstance(node, ast.ClassDef)
    return node.body


def _shown(one: Entry) -> str:
    """The entry of a member: heading, signature and meaning."""
    if one.function is None:
        cls = HANDLES[one.name]
        return f"### {cls.__name__}\n\n{_meaning(_source_of(cls).node, one.name)}"
    code = _signature(one.function)
    return f"### {one.name}\n\n```python\n{code}\n```\n\n{_meaning(one.function, one.name)}"


def _value(source: Source) -> str:
    """The entry of a class that signatures name: its fields, its meaning, and its properties and methods."""
    node, name = source.node, _name(source.node)
    if not isinstance(node, ast.ClassDef):
        return f"### {name}\n\n```python\n{_quoted(ast.unparse(node))}\n```\n\n{_meaning_of_alias(source)}".rstrip()
    body = list(_inherited(source))
    fields = [one for one in body if isinstance(one, ast.AnnAssign | ast.Assign) and not _hidden(one)]
    functions = [one for one in body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")]
    lines = [f"class {name}:", *(f"    {_field(one)}" for one in fields)]
    code = "\n".join(lines if fields else [f"{lines[0]} ..."])
    parts = [f"### {name}", f"```python\n{code}\n```", _meaning(node, name)]
    if functions:
        parts.append("\n".join(_bullet(one, name) for one in functions))
    return "\n\n".join(part for part in parts if part)


def _inherited(source: Source) -> Iterator[ast.stmt]:
    """The body of a class behind those of our bases."""
    assert isinstance(source.node, ast.ClassDef)
    for base in source.node.bases:
        found = _find(source.module, ast.unparse(base))
        if found is not None and isinstance(found.node, ast.ClassDef):
            yield from _inherited(found)
    yield from source.node.body


def _hidden(field: ast.AnnAssign | ast.Assign) -> bool:
    target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
    text = ast.unparse(field.annotation) if isinstance(field, ast.AnnAssign) else ""
    return not isinstance(target, ast.Name) or target.id.startswith("_") or text.startswith("ClassVar")


def _field(field: ast.AnnAssign | ast.Assign) -> str:
    """A field with its default. A default that a function makes is not shown."""
    if isinstance(field, ast.AnnAssign) and isinstance(field.value, ast.Call):
        return _quoted(f"{ast.unparse(field.target)}: {ast.unparse(field.annotation)} = ...")
    return _quoted(ast.unparse(field))


def _bullet(function: ast.FunctionDef, owner: str) -> str:
    decorators = {ast.unparse(one) for one in function.decorator_list}
    is_property = bool(decorators & {"property", "cached_property"})
    arguments = "" if is_property else f"({', '.join(_arguments(function.args))})"
    meaning = _meaning(function, owner).replace("\n\n", "\n").replace("\n", "\n  ")
    return f"- `{_quoted(f'{function.name}{arguments}')}`: {meaning}"


def _signature(function: ast.FunctionDef) -> str:
    """`def name(…) -> …: ...` without self, an argument a line if one line is too short; a property as a field."""
    returns = "" if function.returns is None else ast.unparse(function.returns)
    if any(ast.unparse(one) == "property" for one in function.decorator_list):
        return f"{function.name}: {returns}"
    given = _arguments(function.args)
    flat = f"def {function.name}({', '.join(given)}) -> {returns}: ..."
    if len(flat) <= WIDTH:
        return _quoted(flat)
    lines = [f"def {function.name}(", *(f"    {one}," for one in given), f") -> {returns}: ..."]
    return _quoted("\n".join(lines))


def _arguments(args: ast.arguments) -> list[str]:
    positional = [*args.posonlyargs, *args.args]
    missing = [None] * (len(positional) - len(args.defaults))
    pairs = zip(positional, [*missing, *args.defaults], strict=True)
    found = [_argument(one, default) for one, default in pairs if one.arg not in ("self", "cls")]
    if args.vararg is not None:
        found.append(f"*{_argument(args.vararg, None)}")
    elif args.kwonlyargs:
        found.append("*")
    found += [_argument(one, default) for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg is not None:
        found.append(f"**{_argument(args.kwarg, None)}")
    return found


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if one.annotation is None else f": {ast.unparse(one.annotation)}"
    value = "" if default is None else f" = {ast.unparse(default)}"
    return f"{one.arg}{annotation}{value}"


def _quoted(code: str) -> str:
    return code if '"' in code else code.replace("'", '"')


def _meaning_of_alias(source: Source) -> str:
    """The text below the assignment, if there is one."""
    body = _tree(source.module).body
    below = body[body.index(source.node) + 1]
    text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
    return _written(str(text), _name(source.node), set())


def _meaning(node: ast.AST, name: str) -> str:
    """The docstring in Markdown."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    free = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    return _written(ast.get_docstring(node) or "", name, free)


def _written(text: str, name: str, free: set[str]) -> str:
    """Paragraphs with code and links. `free`: names that are arguments here, and no methods of the page."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    return "\n\n".join(_wrapped(_linked(part, name, free)) for part in paragraphs)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _linked(text: str, name: str, free: set[str]) -> str:
    text = re.sub(r"(?<![`\w])[A-Z_]+\$\w+", r"`\g<0>`", text)
    marked = in_markdown(text, name, folder="../operators/")
    pieces = re.split(r"(`[^`]*`|\[[^\]]*\]\([^)]*\))", marked)
    return "".join(_piece(piece, name, free) for piece in pieces)


def _piece(piece: str, name: str, free: set[str]) -> str:
    if piece.startswith("`"):
        found = _member(piece.strip("`"), name)
        return piece if found is None or piece.strip("`") in free else f"[{piece}](#{found})"
    if piece.startswith("["):
        return piece
    ruled = re.sub(r"\bR\d+[a-z]*\b", r"[\g<0>](../rules.md)", piece)
    ruled = re.sub(r"\b(?:PROTOCOL )?(step \d+)", r"[\1](protocol.md)", ruled)
    return re.sub(r"(?<!\\)([<*])", r"\\\1", ruled)


def _member(said: str, name: str) -> str | None:
    """The anchor of a member that a docstring names: `Lake.finish`, or `finish` of the same object."""
    owner, _, member = said.rpartition(".")
    handles = {cls.__name__: handle for handle, cls in HANDLES.items()}
    handle = handles.get(owner) if owner else name.partition(".")[0]
    full = f"{handle}.{member}"
    return slug(full) if full in _public() and full != name else None


@cache
def _public() -> frozenset[str]:
    return frozenset(public())


if __name__ == "__main__":
    if (_text := PAGE.read_text(encoding="utf-8")) != (_new := with_members(_text)):
        PAGE.write_text(_new, encoding="utf-8")
        print(PAGE.relative_to(ROOT))
