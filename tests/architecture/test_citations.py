"""Citations of the protocol in docstrings and comments (steps, faults, invariants) are on its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "provider" / "docs"
PROTOCOL = DOCS / "reference" / "protocol.md"
KINDS = {"Step ": r"\bsteps? (\d+)(?:(?: to |–|, | and )(\d+))*", "V": r"\bV(\d+)\b", "I": r"\bI(\d+)\b"}


def cited(kind: str, *, of_change_streams: bool = False) -> dict[str, list[str]]:
    """Citations of the modules of change streams, or of all others, with their modules."""
    found: dict[str, list[str]] = {}
    for module in sorted((ROOT / "provider" / "tidemark").rglob("*.py")):
        if ("change_streams" in module.parts) is not of_change_streams:
            continue
        for match in re.finditer(KINDS[kind], module.read_text(encoding="utf-8")):
            for number in re.findall(r"\d+", match[0]):
                found.setdefault(f"{kind}{number}", []).append(module.name)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_citation_is_on_the_page_of_the_protocol(kind: str) -> None:
    known = re.findall(rf"^- \*\*({kind}\d+)\.?\*\*", PROTOCOL.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(known) == len(set(known))
    assert {one: modules for one, modules in cited(kind).items() if one not in known} == {}


def test_the_protocol_is_cited() -> None:
    assert all(cited(kind) for kind in KINDS)


def test_every_invariant_that_change_streams_cite_is_on_the_page_of_their_rules() -> None:
    known = re.findall(r"^\| (I\d+) \|", (DOCS / "change-stream-rules.md").read_text(encoding="utf-8"), re.MULTILINE)
    found = cited("I", of_change_streams=True)
    assert found
    assert {one: modules for one, modules in found.items() if one not in known} == {}
