"""Columns that an ALTER TABLE brings and takes away, with the default that its text shows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["NOTHING", "AddedColumn", "Alteration", "Token", "alteration_of"]

_NO_COLUMNS = (  # behind ADD or DROP
    "INDEX", "KEY", "UNIQUE", "PRIMARY", "FULLTEXT", "SPATIAL", "CONSTRAINT", "FOREIGN", "CHECK", "PARTITION", "PERIOD",
    "SYSTEM",
)  # fmt: skip
_OTHER_VALUES = ("GENERATED", "AS", "AUTO_INCREMENT", "SERIAL", "PRIMARY", "KEY", "UNIQUE")  # rows have no default
_OF_STORAGE = ("COLUMN_FORMAT", "STORAGE")  # also have a word DEFAULT
_NUMBER = re.compile(r"[+-]?\d*(?:\.\d*)?")
_ESCAPED = re.compile(r"''|\\.", re.S)
_UNESCAPED = {r"\0": "\0", r"\n": "\n", r"\r": "\r", r"\Z": "\x1a", r"\t": "\t", r"\b": "\b"}
_WORDS = {"NULL": None, "TRUE": "1", "FALSE": "0"}


@dataclass(frozen=True)
class Token:
    """`text`: of a name without its quotes. `name`: whether it may be one; `bare`: it has no quotes."""

    text: str
    name: bool
    bare: bool

    def says(self, *words: str) -> bool:
        """Whether it is one of these words, in any case."""
        return self.bare and self.text.upper() in words


@dataclass(frozen=True)
class AddedColumn:
    """A column of an ADD. `default`: the text of its DEFAULT, None for NULL or without one. `constant`: it is a
    literal, or there is none. `plain`: it may be NULL and came without a value. `if_absent`: IF NOT EXISTS.
    """

    name: str
    default: str | None = None
    constant: bool = True
    plain: bool = True
    if_absent: bool = False


@dataclass(frozen=True)
class Alteration:
    """`dropped`: names of columns that went; `renamed`: pairs of an old and a new name. All are in small letters."""

    dropped: frozenset[str] = frozenset()
    added: tuple[AddedColumn, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.dropped or self.added or self.renamed)

    @property
    def come(self) -> frozenset[str]:
        """Names that are other columns now, unless they are of IF NOT EXISTS."""
        return frozenset((*(one.name for one in self.added if not one.if_absent), *(new for _, new in self.renamed)))

    @property
    def if_absent(self) -> frozenset[str]:
        """Names that are other columns now if the table had none of them."""
        return frozenset(one.name for one in self.added if one.if_absent)

    @property
    def exchanges(self) -> bool:
        """A column goes and comes in one statement, so it has other values then."""
        gone = {*self.dropped, *(old for old, _ in self.renamed)}
        return bool(gone & {*self.come, *self.if_absent})


NOTHING = Alteration()


def alteration_of(tokens: Iterable[Token]) -> Alteration:
    """Of an ALTER TABLE, from behind the table's name on."""
    dropped: set[str] = set()
    added: list[AddedColumn] = []
    renamed: list[tuple[str, str]] = []
    for clause in _clauses(tokens):
        verb, rest = clause[:1], clause[1:]
        if not verb or not rest or rest[0].says(*_NO_COLUMNS):
            continue
        is_column = rest[0].says("COLUMN")
        names = [one for one in (rest[1:] if is_column else rest) if not one.says("IF", "EXISTS")]
        if verb[0].says("ADD"):
            added.extend(_added(names))
        elif verb[0].says("DROP") and names:
            dropped.add(names[0].text.lower())
        elif verb[0].says("CHANGE") or (verb[0].says("RENAME") and is_column):
            pair = [one.text.lower() for one in names if not one.says("TO")][:2]
            renamed.extend([(pair[0], pair[1])] if len(set(pair)) == 2 else [])
    return Alteration(frozenset(dropped), tuple(added), tuple(renamed))


def _clauses(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The parts of an ALTER between its commas; those in parentheses are within a part."""
    depth = 0
    clause: list[Token] = []
    for token in tokens:
        depth += token.says("(") - token.says(")")
        if token.says(",") and depth <= 0:
            yield clause
            clause = []
        else:
            clause.append(token)
    yield clause


def _added(names: Sequence[Token]) -> Iterator[AddedColumn]:
    """Of one column, or of several in parentheses."""
    if_absent = bool(names) and names[0].says("NOT")
    names = names[1:] if if_absent else names
    if not names:
        return
    if not names[0].says("("):
        yield _declared(names, if_absent=if_absent)
        return
    for part in _clauses(names[1:]):
        if part and not part[0].says(*_NO_COLUMNS):
            yield _declared(part, if_absent=if_absent)


def _declared(tokens: Sequence[Token], *, if_absent: bool) -> AddedColumn:
    """A column whose rows have another value than a default is as one whose default is no literal."""
    name, words = tokens[0].text.lower(), list(_outer(tokens[1:]))
    if any(one.says(*_OTHER_VALUES) for one in words):
        return AddedColumn(name, constant=False, if_absent=if_absent)
    required = any(one.says("NOT") and two.says("NULL") for one, two in pairwise(words))
    places = (place for place, one in enumerate(words) if one.says("DEFAULT") and not _is_of_storage(words, place))
    place = next(places, None)
    if place is None:
        return AddedColumn(name, plain=not required, if_absent=if_absent)
    constant, text = _literal(words[place + 1 : place + 6])
    return AddedColumn(name, text, constant, constant and text is None and not required, if_absent)


def _is_of_storage(words: Sequence[Token], place: int) -> bool:
    return place > 0 and words[place - 1].says(*_OF_STORAGE)


def _outer(tokens: Iterable[Token]) -> Iterator[Token]:
    """Without what is in parentheses; of those themselves the opening one."""
    depth = 0
    for token in tokens:
        depth -= token.says(")")
        if depth == 0 and not token.says(")"):
            yield token
        depth += token.says("(")


def _literal(words: Sequence[Token]) -> tuple[bool, str | None]:
    """Whether a value begins with a literal, and its text. An expression is none."""
    if not words:
        return False, None
    first, following = words[0], words[1:2]
    if not first.bare:
        joined = bool(following) and not following[0].bare
        inner = first.text if first.name else first.text[1:-1]
        return not joined, _ESCAPED.sub(lambda found: _UNESCAPED.get(found[0], found[0][1:]), inner)
    if first.text.upper() in _WORDS:
        return True, _WORDS[first.text.upper()]
    text = ""
    for one in words:
        if not one.bare or not _NUMBER.fullmatch(text + one.text):
            break
        text += one.text
    return any(sign.isdigit() for sign in text), text.removeprefix("+")
