"""Statements in a binary log that change a whole table. Pure.

Rows come as events. A change of all rows of a table at once comes as a statement only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from tidemark.replication.model.replication import ObjectName

__all__ = ["Act", "Effect", "effects_of", "is_change_of_rows", "words_of"]


class Act(Enum):
    """The effect of a statement on a table."""

    TRUNCATED = auto()
    LEFT = auto()  # the name has no table any more
    CAME = auto()  # another table has the name, with rows of which there are no events
    CAME_IF_ABSENT = auto()  # so it is if there was no table of the name
    REWRITTEN = auto()  # rows came or went with a part of the table


@dataclass(frozen=True)
class Effect:
    """On the table of that name."""

    act: Act
    name: ObjectName


_TOKEN = re.compile(
    r"""\s+ | --[ \t][^\n]* | --$ | \#[^\n]* | /\*(?!M?!) .*? \*/ | /\*M?!\d* | \*/
    | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*") | (?P<text>'(?:[^'\\]|\\.|'')*')
    | (?P<word>[\w$]+) | (?P<sign>.)""",
    re.X | re.S,
)
_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"})


@dataclass(frozen=True)
class _Token:
    """`text`: of a name without its quotes. `name`: whether it may be one; `bare`: it has no quotes."""

    text: str
    name: bool
    bare: bool

    def says(self, *words: str) -> bool:
        return self.bare and self.text.upper() in words


def words_of(statement: str, most: int = 3) -> tuple[str, ...]:
    """Its first words, in capitals."""
    found = []
    for token in _tokens(statement):
        found.append(token.text.upper())
        if len(found) == most:
            break
    return tuple(found)


def is_change_of_rows(statement: str) -> bool:
    """Whether it changes rows, which is so in STATEMENT format only."""
    words = words_of(statement, 1)
    return bool(words) and words[0] in _ROWS


def effects_of(statement: str, schema: str) -> tuple[Effect, ...]:
    """In their order. `schema`: of names that have none."""
    if words_of(statement, 1) and words_of(statement, 1)[0] not in ("TRUNCATE", "DROP", "CREATE", "RENAME", "ALTER"):
        return ()
    return tuple(_Statement(list(_tokens(statement)), schema).effects())


def _tokens(statement: str) -> Iterator[_Token]:
    """Without comments; what is in a comment for servers of some version counts."""
    for found in _TOKEN.finditer(statement):
        quoted, word = found["quoted"], found["word"]
        if quoted is not None:
            yield _Token(quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True, False)
        elif word is not None:
            yield _Token(word, True, True)
        elif found["text"] is not None or found["sign"] is not None:
            yield _Token(found["text"] or found["sign"], False, found["text"] is None)


def _is_of_parts(first: _Token, second: _Token) -> bool:
    """Whether an ALTER with these two words takes rows away, or brings some, without an event."""
    parts = first.says("TRUNCATE", "DROP", "EXCHANGE", "CONVERT") and second.says("PARTITION")
    return parts or (first.says("IMPORT", "DISCARD") and second.says("TABLESPACE", "PARTITION"))


class _Statement:
    def __init__(self, tokens: Sequence[_Token], schema: str) -> None:
        self._tokens, self._schema, self._at = tokens, schema, 0

    def effects(self) -> Iterator[Effect]:
        if self._take("TRUNCATE"):
            self._take("TABLE")
            yield Effect(Act.TRUNCATED, self._name())
        elif self._take("DROP"):
            yield from self._dropped()
        elif self._take("CREATE"):
            yield from self._created()
        elif self._take("RENAME"):
            yield from self._renamed()
        elif self._take("ALTER"):
            yield from self._altered()

    def _dropped(self) -> Iterator[Effect]:
        if not self._take("TABLE", "TABLES"):
            return
        self._if_exists()
        yield Effect(Act.LEFT, self._name())
        while self._take(","):
            yield Effect(Act.LEFT, self._name())

    def _created(self) -> Iterator[Effect]:
        replaced = bool(self._take("OR") and self._take("REPLACE"))
        if not self._take("TABLE"):
            return
        checked = self._if_exists() and not replaced
        yield Effect(Act.CAME_IF_ABSENT if checked else Act.CAME, self._name())

    def _renamed(self) -> Iterator[Effect]:
        if not self._take("TABLE", "TABLES"):
            return
        self._if_exists()
        yield from self._moved()
        while self._take(","):
            yield from self._moved()

    def _moved(self) -> Iterator[Effect]:
        before = self._name()
        while not self._take("TO"):  # MariaDB may have WAIT or NOWAIT here
            if self._at >= len(self._tokens):
                return
            self._at += 1
        yield Effect(Act.LEFT, before)
        yield Effect(Act.CAME, self._name())

    def _altered(self) -> Iterator[Effect]:
        for word in ("ONLINE", "OFFLINE", "IGNORE"):
            self._take(word)
        if not self._take("TABLE"):
            return
        self._if_exists()
        name = self._name()
        rest = self._tokens[self._at :]
        if any(_is_of_parts(first, second) for first, second in pairwise(rest)):
            yield Effect(Act.REWRITTEN, name)
        yield from self._renamed_by_alter(name)

    def _renamed_by_alter(self, name: ObjectName) -> Iterator[Effect]:
        rest = self._tokens[self._at :]
        for place, token in enumerate(rest[:-1]):
            if token.says("RENAME") and not rest[place + 1].says("COLUMN", "INDEX", "KEY"):
                self._at += place + 1
                self._take("TO", "AS", "=")
                yield Effect(Act.LEFT, name)
                yield Effect(Act.CAME, self._name())
                return

    def _take(self, *words: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at].says(*words):
            self._at += 1
            return True
        return False

    def _if_exists(self) -> bool:
        if not self._take("IF"):
            return False
        self._take("NOT")
        self._take("EXISTS")
        return True

    def _name(self) -> ObjectName:
        first = self._part()
        return ObjectName(first, self._part()) if self._take(".") else ObjectName(self._schema, first)

    def _part(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        self._at += 1
        return self._tokens[self._at - 1].text
