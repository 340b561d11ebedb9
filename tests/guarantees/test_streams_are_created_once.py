"""A stream is created once under a name by which it is found again. Of two creations at once, which both saw no stream
of the name, one creates it and the other finds it.
"""

from __future__ import annotations

import pytest

from tests.guarantees.world import World
from tidemark.errors import InvalidArgument, StreamExists
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.model.sources import Source, table_source
from tidemark.streams.worker.defining import (
    CreatedStream,
    IfExists,
    Sources,
    StreamRequest,
    clone_stream,
    create_stream,
)
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import get_stream

REQUEST = StreamRequest("fresh", "source")


def created(world: World, request: StreamRequest, *, overtaken_by: StreamRequest | None = None) -> CreatedStream:
    def find(asked: StreamRequest) -> Source:
        if overtaken_by is not None:
            created(world, overtaken_by)
        table = world.sources[asked.on]
        return table_source(TableRef(asked.on, table.uri, table.table_id))

    return create_stream(world.store, request, who="ann", sources=Sources(find, open_table))


def test_the_later_one_keeps_the_stream_of_the_earlier_one(world: World) -> None:
    late = created(world, REQUEST, overtaken_by=REQUEST)
    assert (late.created, late.stream) == (False, get_stream(world.store, "fresh"))


@pytest.mark.parametrize(
    ("late", "early"),
    [
        (REQUEST, StreamRequest("fresh", "other")),
        (REQUEST, StreamRequest("fresh", "source", mode=StreamMode.APPEND_ONLY)),
        (StreamRequest("fresh", "source", if_exists=IfExists.FAIL), REQUEST),
    ],
)
def test_the_later_one_fails_if_it_may_not_keep_that_stream(
    world: World, late: StreamRequest, early: StreamRequest
) -> None:
    with pytest.raises(StreamExists, match="ask for the same source, mode and keys"):
        created(world, late, overtaken_by=early)
    assert get_stream(world.store, "fresh").source.name == early.on


@pytest.mark.parametrize("name", ["fresh ", " fresh"])
def test_a_name_with_blanks_around_it_is_refused_since_lists_of_names_have_none(world: World, name: str) -> None:
    with pytest.raises(InvalidArgument, match="must not begin or end with a blank"):
        created(world, StreamRequest(name, "source"))
    with pytest.raises(InvalidArgument, match="must not begin or end with a blank"):
        clone_stream(world.store, "s", name, who="ann", tables=open_table)
