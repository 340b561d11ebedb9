"""Statements in a binary log that change a whole table. Pure.

Rows come as events. A change of all rows of a table at once comes as a statement only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, dropwhile, islice, pairwise

from tidemark.replication.model.replication import ObjectName
from tidemark.replication.sources.mysql.alterations import NOTHING, Alteration, Token, alteration_of

__all__ = ["Act", "Effect", "effects_of", "is_change_of_rows", "words_of"]


class Act(Enum):
    """The effect of a statement on a table."""

    TRUNCATED = auto()
    LEFT = auto()  # the name has no table any more
    CAME = auto()  # another table has the name, with rows of which there are no events
    CAME_IF_ABSENT = auto()  # so it is if there was no table of the name
    REWRITTEN = auto()  # rows came, went or changed without an event
    ALTERED = auto()  # columns came or went


@dataclass(frozen=True)
class Effect:
    """On the table of that name. `alteration`: of its columns."""

    act: Act
    name: ObjectName
    alteration: Alteration = NOTHING


_TOKEN = re.compile(
    r"""\s+ | --[ \t][^\n]* | --$ | \#[^\n]* | /\*(?!M?!) .*? \*/ | /\*M?!\d* | \*/
    | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*") | (?P<text>'(?:[^'\\]|\\.|'')*')
    | (?P<word>[\w$]+) | (?P<sign>.)""",
    re.X | re.S,
)
_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "SELECT"})


def words_of(statement: str, most: int = 3) -> tuple[str, ...]:
    """Its first words, in capitals."""
    found = []
    for token in _tokens(statement):
        found.append(token.text.upper())
        if len(found) == most:
            break
    return tuple(found)


def is_change_of_rows(statement: str) -> bool:
    """Whether it changes rows, in STATEMENT format alone. A SELECT is in the log if its function changes them."""
    words = words_of(statement, 1)
    return bool(words) and words[0] in _ROWS


def effects_of(statement: str, schema: str) -> tuple[Effect, ...]:
    """In their order. `schema`: of names that have none."""
    if not {"TRUNCATE", "DROP", "CREATE", "RENAME", "ALTER"} & set(words_of(statement, 1)):
        return ()
    return tuple(_Statement(list(_tokens(statement)), schema).effects())


def _tokens(statement: str) -> Iterator[Token]:
    """Without the settings that a MariaDB has for one statement (SET STATEMENT … FOR)."""
    tokens = _all_tokens(statement)
    head = list(islice(tokens, 2))
    if len(head) == 2 and head[0].says("SET") and head[1].says("STATEMENT"):
        return islice(dropwhile(lambda token: not token.says("FOR"), tokens), 1, None)
    return chain(head, tokens)


def _all_tokens(statement: str) -> Iterator[Token]:
    """Without comments; what is in a comment for servers of some version counts."""
    for found in _TOKEN.finditer(statement):
        quoted, word = found["quoted"], found["word"]
        if quoted is not None:
            yield Token(quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True, False)
        elif word is not None:
            yield Token(word, True, True)
        elif found["text"] is not None or found["sign"] is not None:
            yield Token(found["text"] or found["sign"], False, found["text"] is None)


def _is_of_parts(first: Token, second: Token) -> bool:
    """Whether an ALTER with these two words takes rows away, or brings some, without an event."""
    parts = first.says("TRUNCATE", "DROP", "EXCHANGE", "CONVERT") and second.says("PARTITION")
    brought = first.says("CONVERT") and second.says("TABLE")
    return parts or brought or (first.says("IMPORT", "DISCARD") and second.says("TABLESPACE", "PARTITION"))


class _Statement:
    def __init__(self, tokens: Sequence[Token], schema: str) -> None:
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
        ignores = False
        for word in ("ONLINE", "OFFLINE", "IGNORE"):
            ignores = self._take(word)
        if not self._take("TABLE"):
            return
        self._if_exists()
        name = self._name()
        if not self._take("NOWAIT") and self._take("WAIT"):
            self._at += 1
        rest = self._tokens[self._at :]
        if ignores or any(_is_of_parts(first, second) for first, second in pairwise(rest)):
            yield Effect(Act.REWRITTEN, name)  # a MariaDB that ignores duplicates takes rows away
        yield from self._of_columns(name)
        yield from self._of_other_tables()
        yield from self._renamed_by_alter(name)

    def _of_columns(self, name: ObjectName) -> Iterator[Effect]:
        """A column that goes and comes in one statement has other values then."""
        alteration = alteration_of(self._tokens[self._at :])
        if alteration.exchanges:
            yield Effect(Act.REWRITTEN, name)
        elif alteration:
            yield Effect(Act.ALTERED, name, alteration)

    def _of_other_tables(self) -> Iterator[Effect]:
        """A table that gives its rows to a partition, or gets those of one."""
        start = self._at
        for place, (first, second) in enumerate(pairwise(self._tokens[start:]), start):
            self._at = place + 2
            if first.says("WITH") and second.says("TABLE") and self._exchanges(start, place):
                yield Effect(Act.REWRITTEN, self._name())
            elif first.says("CONVERT") and second.says("TABLE"):
                yield Effect(Act.LEFT, self._name())
            elif first.says("CONVERT") and second.says("PARTITION"):
                self._at += 1
                if self._take("TO") and self._take("TABLE"):
                    yield Effect(Act.CAME, self._name())
        self._at = start

    def _exchanges(self, start: int, end: int) -> bool:
        return any(token.says("EXCHANGE") for token in self._tokens[start:end])

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
