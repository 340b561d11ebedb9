"""Event files in a bucket are read like those in a directory."""

from __future__ import annotations

import json
import time

from tests.databases.event_files.dropped import event, read_events, reader_of, require_kept
from tests.object_store import BUCKET, running_object_store
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.planning.debezium_marks import mark_of


def test_a_bucket_is_read_from_the_last_place_on() -> None:
    with running_object_store() as store:
        parameters = {"storage_options": json.dumps(store.options), "wait_seconds": "0"}
        address = SourceAddress(SourceKind.EVENT_FILES, "", 0, f"s3://{BUCKET}/files", "", parameters=parameters)

        def put(minute: int, *events: object) -> None:
            lines = "".join(json.dumps(one) + "\n" for one in events)
            store.put(f"files/d_t/2024/05/01/10/{minute:02d}/a.jsonl", lines.encode())

        put(5, event(50, 1), event(51, 2))
        reader = reader_of(address)
        assert [one["uuid"] for one in read_events(address, reader)] == [None, "t50", "t51"]
        mark = mark_of(reader.upto)
        time.sleep(1.1)  # the store has times in seconds
        put(1, event(10, 3))
        later = reader_of(address, start=mark, at=2, schemas=reader.schemas)
        assert [one["uuid"] for one in read_events(address, later)] == ["t10"]
        assert later.late
        require_kept(address, mark_of(later.upto))
