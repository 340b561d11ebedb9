"""The anchors of a page's headings, as GitHub and the site make them.

Both take the text of a heading without its marks, in lower case, with hyphens for spaces and without punctuation. An
equal one gets a number. The site gives anchors to the first three levels alone (`myst_heading_anchors`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.architecture.prose import PARSER

__all__ = ["anchors", "lost_links", "slug"]

SITE = Path(__file__).parents[2] / "provider" / "docs"
LEVELS_OF_THE_SITE = 3


def slug(heading: str) -> str:
    """The anchor of a heading's text."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that a link to the page may end in."""
    levels = LEVELS_OF_THE_SITE if page.is_relative_to(SITE) else 6
    return frozenset(_anchors(page.read_text(encoding="utf-8"), levels))


def _anchors(text: str, levels: int) -> Iterator[str]:
    tokens = PARSER.parse(text)
    found: set[str] = set()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            texts = (child.content for child in inline.children or () if child.type in ("text", "code_inline"))
            plain = slug("".join(texts))
            numbered = (plain if number == 0 else f"{plain}-{number}" for number in range(len(tokens)))
            made = next(one for one in numbered if one not in found)
            found.add(made)
            if int(token.tag[1:]) <= levels:
                yield made
    yield from re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)


def lost_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no heading of a page."""
    found = []
    for link in _links(page.read_text(encoding="utf-8")):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


def _links(text: str) -> Iterator[str]:
    """Links and pictures without a scheme. Code has none."""
    for token in PARSER.parse(text):
        for child in token.children or ():
            address = str(child.attrs.get("href", child.attrs.get("src", "")))
            if address and not re.match(r"\w+:|//", address):
                yield address
