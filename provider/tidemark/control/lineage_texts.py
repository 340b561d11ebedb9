"""A part of the graph as text for programs that draw: Mermaid and DOT. Names are in quotes, with markup escaped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tidemark.control.lineage_graph import Part

__all__ = ["DRAWN", "dot", "mermaid"]

_ENTITIES = {"&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "#": "#35;", "\n": " "}


def mermaid(part: Part) -> str:
    """A flowchart from left to right."""
    numbers = {node.key: f"n{number}" for number, node in enumerate(part.nodes)}
    boxes = (f'  {numbers[node.key]}["{_in_mermaid(f"{node.kind} {node.name}")}"]' for node in part.nodes)
    arrows = (f"  {numbers[edge.source]} --> {numbers[edge.target]}" for edge in part.edges)
    return "\n".join(("flowchart LR", *boxes, *arrows))


def dot(part: Part) -> str:
    """A directed graph of Graphviz."""
    numbers = {node.key: f"n{number}" for number, node in enumerate(part.nodes)}
    boxes = (f"  {numbers[node.key]} [label={_in_dot(f'{node.kind} {node.name}')}]" for node in part.nodes)
    arrows = (f"  {numbers[edge.source]} -> {numbers[edge.target]}" for edge in part.edges)
    return "\n".join(("digraph lineage {", "  rankdir=LR", "  node [shape=box]", *boxes, *arrows, "}"))


DRAWN: Mapping[str, Callable[[Part], str]] = {"mermaid": mermaid, "dot": dot}
"""The texts by their names."""


def _in_mermaid(words: str) -> str:
    return "".join(_ENTITIES.get(letter, letter) for letter in words)


def _in_dot(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)
