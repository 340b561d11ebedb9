"""The mechanical rules of the project's prose, and the sentences of a page of Markdown that break them.

A sentence counts a span of code as one word and a link as its text. In a table, `;` and `:` end a sentence, too. Blocks
of code, comments and the regions that `make` writes from docstrings are not prose of a page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = [
    "FIRST_WORDS",
    "LONGEST",
    "WORDS",
    "Finding",
    "Sentence",
    "broken_rules",
    "sentences_of_docstrings",
    "sentences_of_page",
]

PARSER = MarkdownIt("commonmark").enable("table")
LONGEST = 22  # words
FIRST_WORDS = {
    "what": "name the noun",
    "who": "name the reader: you, a user, a task",
    "whoever": "name the reader: you, a user, a task",
    "whatever": "name the noun, with “every”",
    "where": "“if” for a condition, “in …” for a place",
    "one that": "repeat the noun",
    "those that": "repeat the noun",
    "of which": "begin with the subject",
    "of each": "begin with the subject",
    "each of": "“every” and the noun",
}
WORDS = {
    r"(is|are|was|were|be|been|being) told": "is reported, shows",
    r"tells? (how|what|whether|where|which|of)": "reports, shows, says",
    r"told (by|in|as|to|of)": "reported, named",
    r"(?<!as it )stands?(?! for\b)|stood": "is, exists, is stored",
    r"lies|lain": "is, is stored",
    r"(go|goes|going|went|gone) on": "continue",
    r"anew": "recreate, again",
    r"(?<!whether )(?<!if )(is|are|was|were|be|been) (not |still |already |always |never )?there(?! (is|are|was)\b)": (
        "exists, is stored"
    ),
    r"(come|comes|came) to(?! (you|the lake|mind)\b)": "reaches, happens, gets",
    r"whoever|whosoever|whomever": "you, a user who",
    r"whichever|whatever": "any, every",
    r"mend(s|ed|ing)?": "fix, repair, correct",
    r"till": "until",
    r"of (which|whose|whom)": "whose, and a sentence of its own",
    r"in whose|by whose|for whom|to whom": "a sentence of its own",
    r"thereof|therein|thereby|thereupon|thereafter": "of it, in it, then",
    r"(write|writes|written|writing|wrote) down": "apply",
    r"write-downs?": "apply, an apply",
    r"trim(s|med|ming)?": "expire",
    r"flagged": "needs a backfill",
    r"alike": "equally, in the same way",
    r"at the latest": "within, no later than",
    r"in the meantime|meanwhile": "while …, until then",
    r"so far as|as far as|insofar": "if",
    r"be it": "whether",
    r"as good as": "nearly, equal to",
    r"e\.g\.|i\.e\.|etc\.": "for example, that is, and so on",
    r"also (if|where|while)": "even if, even while",
    r"so many(?!( \w+){0,2} that\b)": "the most, the number, this many",
    r"(is|are|stays?|leaves (it|the \w+|both \w+)) as (it|they) (was|were)(?= *([.,;:|)]|$))": "is unchanged",
}


@dataclass(frozen=True)
class Sentence:
    """A sentence, the line on which it begins, and the kind of block it is in: text, heading or cell."""

    line: int
    text: str
    kind: str

    @property
    def words(self) -> int:
        plain = re.sub(r"`[^`]*`", "code", self.text)
        return sum(any(char.isalnum() for char in word) for word in plain.split())


@dataclass(frozen=True)
class Finding:
    """A rule that a sentence breaks, and what to write in place of it."""

    sentence: Sentence
    rule: str
    better: str

    def report(self, page: str) -> str:
        return f"{page}:{self.sentence.line}: {self.rule}; better: {self.better}\n    {self.sentence.text}"


def broken_rules(sentence: Sentence) -> Iterator[Finding]:
    """Every rule that the sentence breaks. Words in code are free; a heading or a question may begin as it likes."""
    plain = re.sub(r"`[^`]*`", "`", sentence.text)
    lowered = " ".join(re.sub(r"[*_“”\"'(]", " ", plain).lower().split())
    if sentence.kind != "heading" and not sentence.text.endswith("?"):
        for first, better in FIRST_WORDS.items():
            if re.match(rf"{first}\b(?!')", lowered):
                yield Finding(sentence, f"begins with “{first}”", better)
    for word, better in WORDS.items():
        if found := re.search(rf"\b({word})(?!\w)", plain, re.IGNORECASE):
            yield Finding(sentence, f"the word “{found[0]}”", better)
    if sentence.words > LONGEST:
        yield Finding(sentence, f"{sentence.words} words", f"two sentences of at most {LONGEST} words")


def sentences_of_page(text: str) -> Iterator[Sentence]:
    """The sentences of a page in Markdown, in their order."""
    line, kind, skipped = 1, "text", False
    for token in PARSER.parse(text):
        line = token.map[0] + 1 if token.map else line
        if token.type == "html_block":
            skipped = ", by make" in token.content or (skipped and "<!-- end of " not in token.content)
        elif token.type in ("heading_open", "td_open", "th_open"):
            kind = "cell" if token.type == "td_open" else "heading"
        elif token.type in ("heading_close", "table_close"):
            kind = "text"
        elif token.type == "inline" and not skipped:
            yield from _sentences_of_block(token, line, kind)


def _sentences_of_block(token: Token, line: int, kind: str) -> Iterator[Sentence]:
    """Splits the text behind each full stop; code cannot end a sentence."""
    pieces: list[str] = []
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif child.type == "code_inline":
            pieces.append(f"`{child.content}`")
        elif child.type in ("text", "image"):
            pieces.append(child.content)
    whole = "".join(pieces)
    ends = r"[.!?;:]" if kind == "cell" else r"[.!?]"
    masked = re.sub(r"`[^`]*`", lambda code: "`" * len(code[0]), whole)
    begin = 0
    for stop in (*(end.end() for end in re.finditer(rf"{ends}[\"”’')]*(?=\s)", masked)), len(whole)):
        sentence = whole[begin:stop]
        if sentence.strip():
            ahead = len(sentence) - len(sentence.lstrip())
            yield Sentence(line + whole.count("\n", 0, begin + ahead), " ".join(sentence.split()), kind)
        begin = stop


def sentences_of_docstrings(source: str) -> Iterator[Sentence]:
    """The sentences of all docstrings of a module. A result in braces counts as code, `:param` as a line of its own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            prose = re.sub(r"\[?\{[^}]*\}\]?", "`code`", re.sub(r"^ *:param", "\n:param", text, flags=re.MULTILINE))
            prose = re.sub(r"`code`(?=\s+[A-Z][a-z])", "`code`.", prose)  # a fact in an error ends a sentence
            first = node.body[0].lineno if text else 1
            yield from (Sentence(first, one.text, one.kind) for one in sentences_of_page(prose))
