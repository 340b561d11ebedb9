"""Streams by many names at once, on every kind of store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.control.store import ControlStore
from tidemark.model.streams import Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.store import streams

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def stream(name: str) -> Stream:
    source, offset = TableRef("t", "file:///t", "id"), StreamOffset("id", 3)
    return Stream(f"uid of {name}", name, source, StreamMode.STANDARD, offset, False, 0, NOW, NOW)


@pytest.mark.parametrize("count", [0, 1, streams.NAMES_AT_ONCE, 2 * streams.NAMES_AT_ONCE + 1])
def test_many_streams_are_found_at_once_whatever_the_case_of_their_names(store: ControlStore, count: int) -> None:
    made = [stream(f"Żółw_{number}") for number in range(count)]
    dropped = stream("gone")

    def write(connection: object) -> None:
        for one in (*made, dropped, stream("other")):
            streams.insert(connection, one, who="test")  # type: ignore[arg-type]
        streams.drop(connection, dropped, at=NOW, who="test", why="dropped")  # type: ignore[arg-type]

    store.write(write)
    names = [one.name.upper() for one in made]
    found = store.read(lambda connection: streams.lookup_all(connection, [*names, *names[:3], "nobody", "gone"]))
    assert found == {one.name.casefold(): one for one in made}
