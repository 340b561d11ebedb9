"""R84, R87: a view may need rows of its tables at the offset which did not change; a VACUUM of these is seen, too."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.guarantees.world import START, World
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.staleness import Staleness
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import create_stream, get_stream

DAY = timedelta(days=1)
JOIN = "SELECT a.id FROM {0} AS a JOIN {1} AS b ON a.id = b.id"
TURNED = "SELECT a.id FROM {1} AS b JOIN {0} AS a ON a.id = b.id"
SELF = "SELECT a.id FROM {0} AS a JOIN {0} AS b ON a.id = b.id"
UNION = "SELECT id FROM (SELECT id FROM {0} UNION ALL SELECT id FROM {1}) AS u"
GROUPS = "SELECT id, count(*) AS n FROM {0} GROUP BY id"
PLAIN = "SELECT id FROM {0} WHERE id > 1"
OUTER = "SELECT a.id FROM {0} AS a LEFT JOIN {1} AS b ON a.id = b.id"


@pytest.fixture
def compacted(world: World) -> World:
    """`source` has a file at version 1, where streams begin; a compaction removed it, and a VACUUM has taken it.

    Its row is live in another file: nobody's changes need it.
    """
    source = world.source
    source.append()
    (old,) = source._files()
    add = {"path": "new.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": False}
    ids = {"baseRowId": 0, "defaultRowCommitVersion": 1, "stats": json.dumps({"numRecords": 1})}
    gone = {"path": old, "dataChange": False, "deletionTimestamp": int(START.timestamp() * 1000), "size": 1}
    numbers = {"baseRowId": 0, "defaultRowCommitVersion": 1, "partitionValues": {}}
    source._commit([{"remove": {**gone, **numbers}}, {"add": {**add, **ids}}], operation="OPTIMIZE")
    world.clock.go(9 * DAY)
    return world


def on_view(world: World, text: str, mode: StreamMode = StreamMode.STANDARD) -> None:
    bases = ("source", "other") if "{1}" in text else ("source",)
    written = text.format(*(f"tidemark_base_{number}" for number in range(2)))
    query = ViewQuery(name="v", text=written, schema_json="{}", bases=bases, settings={}, digest="d1")
    tables = [TableRef(name, world.sources[name].uri, world.sources[name].table_id) for name in bases]
    places = [BaseOffset(table, 1 - number) for number, table in enumerate(tables)]
    create_stream(
        world.store,
        name="v",
        source=TableRef("v", "", query.digest),
        mode=mode,
        at_version=1,
        who="test",
        view=query,
        view_bases=places,
    )


def staleness(world: World) -> Staleness:
    now = world.clock.now
    return status_of(get_stream(world.store, "v"), open_table, now=now).staleness(now)


@pytest.mark.parametrize(
    ("text", "mode", "changed", "lost"),
    [
        (PLAIN, StreamMode.STANDARD, ["source"], False),
        (JOIN, StreamMode.STANDARD, ["source"], False),  # its partners are read at the end
        (JOIN, StreamMode.STANDARD, ["other"], False),  # no row of it has changed: it is read at the end
        (JOIN, StreamMode.STANDARD, ["source", "other"], False),  # only the later of both is read at the start
        (TURNED, StreamMode.STANDARD, ["source", "other"], True),
        (JOIN, StreamMode.APPEND_ONLY, ["other"], True),
        (JOIN, StreamMode.APPEND_ONLY, ["source"], False),
        (SELF, StreamMode.STANDARD, ["source"], True),
        (SELF, StreamMode.APPEND_ONLY, ["source"], True),
        (SELF, StreamMode.STANDARD, [], False),
        (UNION, StreamMode.STANDARD, ["source", "other"], False),
        (UNION, StreamMode.APPEND_ONLY, ["source", "other"], False),
        (GROUPS, StreamMode.STANDARD, ["source"], True),
        (GROUPS, StreamMode.STANDARD, [], False),
        (OUTER, StreamMode.STANDARD, ["source"], True),
    ],
)
def test_rows_at_the_offset_count_where_the_window_reads_them(
    compacted: World, text: str, mode: StreamMode, changed: list[str], lost: bool
) -> None:
    on_view(compacted, text, mode)
    for name in changed:
        compacted.sources[name].append()
    assert (staleness(compacted) is Staleness.STALE) == lost


def test_a_file_that_is_still_there_is_no_loss_and_one_that_came_later_is_not_needed(compacted: World) -> None:
    on_view(compacted, GROUPS)
    source = compacted.source
    source.append()
    assert staleness(compacted) is Staleness.STALE
    lost = status_of(get_stream(compacted.store, "v"), open_table, now=compacted.clock.now).lost_version
    assert lost == 2
    (old,) = [name for name in source._files(1)]
    (source.path / old).write_bytes(b"1")
    source.truncate(START.timestamp())
    (source.path / "new.parquet").write_bytes(b"1")
    assert staleness(compacted) is Staleness.FRESH
