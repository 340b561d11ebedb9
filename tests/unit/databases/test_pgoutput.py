"""Messages as the documentation of the protocol describes them, and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.replication.planning.events import UNCHANGED, Unchanged, Values
from tidemark.replication.sources.postgresql.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    decode,
)

EPOCH = 946_684_800_000_000
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=10)
VALUES = st.lists(st.one_of(st.none(), st.just(UNCHANGED), NAMES, st.just("")), max_size=6)
OIDS = st.integers(0, 2**32 - 1)


def row(values: Values) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(map(value, values))


def value(one: str | Unchanged | None) -> bytes:
    if one is None:
        return b"n"
    if isinstance(one, Unchanged):
        return b"u"
    return b"t" + struct.pack(">I", len(one.encode())) + one.encode()


@given(OIDS, VALUES, VALUES, st.sampled_from(["", "K", "O"]))
def test_changes_of_rows(oid: int, old: Values, new: Values, kind: str) -> None:
    told, before = struct.pack(">I", oid), kind.encode() + row(old) if kind else b""
    assert decode(b"I" + told + b"N" + row(new)) == Insert(oid, new)
    unchanged = UNCHANGED in new
    assert decode(b"U" + told + before + b"N" + row(new)) == Update(
        oid, old if kind else None, kind == "O", new, unchanged
    )
    if kind:
        assert decode(b"D" + told + before) == Delete(oid, old, kind == "O")


@given(OIDS, NAMES, NAMES, st.sampled_from("dnfi"), st.lists(st.tuples(NAMES, OIDS, st.booleans()), max_size=4))
def test_relations(oid: int, schema: str, table: str, identity: str, columns: list[tuple[str, int, bool]]) -> None:
    text = b"R" + struct.pack(">I", oid) + schema.encode() + b"\0" + table.encode() + b"\0" + identity.encode()
    text += struct.pack(">H", len(columns))
    for name, type_oid, key in columns:
        text += bytes([key]) + name.encode() + b"\0" + struct.pack(">Ii", type_oid, -1)
    told = tuple(RelationColumn(name, type_oid, -1, key) for name, type_oid, key in columns)
    assert decode(text) == Relation(oid, schema, table, identity, told)


def test_the_borders_of_a_transaction_truncates_and_messages() -> None:
    assert decode(b"B" + struct.pack(">QqI", 2**63 + 1, -5, 731)) == Begin(2**63 + 1, EPOCH - 5, 731)
    assert decode(b"C" + struct.pack(">BQQq", 0, 7, 9, 1)) == Commit(7, 9, EPOCH + 1)
    assert decode(b"T" + struct.pack(">IBII", 2, 1, 11, 12)) == Truncate((11, 12))
    assert decode(b"M" + struct.pack(">BQ", 1, 99) + b"app\0" + struct.pack(">I", 3) + b"a\0b") == Message(
        True, 99, "app", b"a\0b"
    )


def test_what_says_nothing_of_rows_is_passed_over() -> None:
    assert decode(b"O" + bytes(8) + b"origin\0") is None
    assert decode(b"Y" + bytes(4) + b"s\0t\0") is None


@given(VALUES.filter(bool), st.data())
def test_a_message_that_breaks_off_is_an_error(values: Values, data: st.DataObject) -> None:
    whole = b"I" + struct.pack(">I", 1) + b"N" + row(values)
    with pytest.raises((struct.error, IndexError, ValueError)):
        decode(whole[: data.draw(st.integers(1, len(whole) - 1))])


def test_a_value_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="'b'"):
        decode(b"I" + struct.pack(">I", 1) + b"N" + struct.pack(">H", 1) + b"b\0\0\0\1x")
