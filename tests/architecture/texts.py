"""The texts that the product shows a person: strings of Python and JavaScript as sentences, with `field` for fields.

A text is a string of four words or more, among them a small word of English or two plain words in a row. SQL, DDL,
regular expressions, format codes and lists of names have none, or are left out by their form.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.prose import Sentence, sentences_of_page

__all__ = ["sentences_of_script", "sentences_of_texts"]

FEWEST = 4  # words
FIELD = "`field`"
SMALL_WORDS = re.compile(
    r"(?<![\w.-])(the|an|is|are|it|its|of|that|not|no|to|be|was|has|have|had|and|or|with|for|in|on|by|this|which|what"
    r"|where|who|if|so|than|does|do|did|cannot|must|may|can|from|there|goes|but|[a-z]{2,} [a-z]{2,})(?![\w.(-]\w|\()"
)
STATEMENT = re.compile(
    r"\bSELECT\b.*\bFROM\b|\bDO \$|^CREATE (SCHEMA|DATABASE) \w.*;|^INSERT INTO\b.*\bVALUES\b", re.DOTALL
)
PLACE = re.compile(r"%(\(\w+\))?[-.0-9]*[sdrfg]|\{[\w.!:,]*\}")
SCRIPT = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', re.DOTALL)


def sentences_of_texts(source: str) -> Iterator[Sentence]:
    """The sentences of a module's strings and f-strings. Docstrings are not among them."""
    tree = ast.parse(source)
    yield from (one for line, text in _strings(tree, _left_out(tree)) for one in _sentences(line, text))


def sentences_of_script(source: str) -> Iterator[Sentence]:
    """The sentences of a script's strings and templates."""
    for found in SCRIPT.finditer(source):
        text = found[1] if found[1] is not None else re.sub(r"\$\{[^}]*\}", FIELD, found[2] or "")
        yield from _sentences(source.count("\n", 0, found.start()) + 1, text)


def _sentences(line: int, text: str) -> Iterator[Sentence]:
    text = PLACE.sub(FIELD, text).strip()
    plain = re.sub(r"`[^`]*`", "", text)
    words = [word for word in text.split() if any(char.isalpha() for char in word)]
    if len(words) >= FEWEST and SMALL_WORDS.search(plain) and not STATEMENT.search(plain):
        prose = re.sub(rf"{FIELD} (?=[A-Z][a-z])", f"{FIELD}. ", text)  # the field is a sentence, or ends one
        yield from (Sentence(line, one.text, one.kind) for one in sentences_of_page(prose))


def _strings(node: ast.AST, left_out: set[int]) -> Iterator[tuple[int, str]]:
    """Every string with its line. The parts of a sum or an f-string are one string."""
    if id(node) in left_out:
        return
    text = _joined(node)
    if text is None:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child, left_out)
        return
    yield getattr(node, "lineno", 1), text
    for field in (one for one in ast.walk(node) if isinstance(one, ast.FormattedValue)):
        yield from _strings(field.value, left_out)


def _joined(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else FIELD for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _joined(node.left), _joined(node.right)
        return None if left is right is None else (left or FIELD) + (right or FIELD)
    return None


def _left_out(tree: ast.AST) -> set[int]:
    """Docstrings, and lists of words that `split` makes."""
    found = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "split":
            found.add(id(node.value))
    return found
