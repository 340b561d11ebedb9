"""Begin refuses columns and keys that cannot go together, before anything is stored, and tells what it has pinned."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, commit, remove
from tidemark.control.store import ControlStore
from tidemark.errors import MissingMergeKey, TargetDoesNotFit
from tidemark.model.codec import to_json
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY, ExternalTable, FileFormat
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.fitting import require_columns_of_windows
from tidemark.streams.worker.limits import DEFAULT_LIMITS, JobPaths
from tidemark.streams.worker.outcomes import Begun, Delivered, Opened
from tidemark.streams.worker.pinned import MOST_VERSIONS, facts_of_delivered, facts_of_pinned, tell_pinned
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import create_stream, get_stream, stream_transactions
from tidemark.streams.worker.targets import TargetHead, look_at_targets

from .world import key_of


def no_job(spec: JobSpec) -> JobResult:
    raise AssertionError(f"{spec.kind} was started")


STATS = json.dumps({"numRecords": 10})


def table(place: Path, *columns: str, version: int = 0, properties: dict[str, str] | None = None) -> str:
    """A table of these integer columns, or a commit that changes them."""
    fields = [{"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in columns]
    schema = json.dumps({"type": "struct", "fields": fields})
    configuration = {"delta.enableRowTracking": "true", **(properties or {})}
    said = {"id": f"id-{place.name}", "schemaString": schema, "partitionColumns": [], "configuration": configuration}
    metadata = {"metaData": {**said, "format": {"provider": "parquet"}}}
    mark = {"domain": "delta.rowTracking", "configuration": '{"rowIdHighWaterMark": 1}', "removed": False}
    first = [PROTOCOL, {"domainMetadata": mark}] if version == 0 else []
    commit(place, version, *first, metadata)
    return f"file://{place}"


@pytest.fixture
def store(tmp_path: Path) -> ControlStore:
    made = ControlStore(f"sqlite:///{tmp_path}/control.db")
    uri = table(tmp_path / "source", "id", "amount")
    create_stream(
        made,
        name="s",
        source=TableRef("source", uri, "id-source"),
        mode=StreamMode.STANDARD,
        at_version=0,
        who="test",
    )
    return made


def begun(store: ControlStore, tmp_path: Path, run: str, **how: Any) -> Begun:
    write = PlannedWrite(**{"write_as": WriteAs.APPEND, "target": f"file://{tmp_path}/target", "source": "S", **how})
    return begin(
        Runtime(store, run=no_job, paths=JobPaths("/w", "/x"), tables=open_table),
        key=key_of(run),
        streams=("s",),
        writes=(write,),
        owner="me",
    )


def refused(store: ControlStore, tmp_path: Path, error: type[Exception], problem: str, **how: Any) -> None:
    with pytest.raises(error, match=problem):
        begun(store, tmp_path, "refused", **how)
    assert not stream_transactions(store, "s")


def test_a_mistyped_key_is_refused_before_anything_is_stored_and_the_corrected_run_begins(
    store: ControlStore, tmp_path: Path
) -> None:
    table(tmp_path / "target", "id", "amount")
    commit(tmp_path / "source", 1, add("a.parquet"))
    merge = {"write_as": WriteAs.MERGE}
    refused(
        store,
        tmp_path,
        MissingMergeKey,
        "the stream has no column order_id; it has id, amount",
        keys=("order_id",),
        **merge,
    )
    assert isinstance(begun(store, tmp_path, "refused", keys=("ID",), **merge), Opened)


def test_a_target_that_lacks_a_column_is_refused_before_anything_is_stored(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id")
    commit(tmp_path / "source", 1, add("a.parquet"))
    refused(store, tmp_path, TargetDoesNotFit, "it has no column amount")


def test_the_columns_are_those_at_the_end_of_the_window(store: ControlStore, tmp_path: Path) -> None:
    from tidemark.streams.planning.bounds import Bound

    table(tmp_path / "target", "id", "amount")
    commit(tmp_path / "source", 1, add("a.parquet"))
    table(tmp_path / "source", "id", "amount", "note", version=2)
    refused(store, tmp_path, TargetDoesNotFit, "it has no column note")
    write = PlannedWrite(write_as=WriteAs.APPEND, target=f"file://{tmp_path}/target", source="s")
    bounded = begin(
        Runtime(store, run=no_job, paths=JobPaths("/w", "/x"), tables=open_table),
        key=key_of("b"),
        streams=("s",),
        writes=(write,),
        owner="me",
        bound=Bound(max_commits=1),
    )
    assert isinstance(bounded, Opened)


def test_an_empty_window_asks_for_no_columns(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id")
    assert isinstance(begun(store, tmp_path, "empty"), Delivered)
    assert get_stream(store, "s").offset.version == 0


def merge_into(store: ControlStore, tmp_path: Path, key: str) -> tuple[TargetHead, ...]:
    write = PlannedWrite(WriteAs.MERGE, f"file://{tmp_path}/target", source="S", keys=(key,))
    return look_at_targets(store, (write,), open_table, DEFAULT_LIMITS)


def test_the_columns_of_a_past_window_are_those_that_it_had(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id", "amount")
    commit(tmp_path / "source", 1, add("a.parquet"))
    opened = begun(store, tmp_path, "past")
    assert isinstance(opened, Opened)
    table(tmp_path / "source", "id", "amount", "later", version=2)
    windows = opened.transaction.windows
    require_columns_of_windows(windows, merge_into(store, tmp_path, "id"), open_table)
    with pytest.raises(MissingMergeKey, match="the stream has no column order_id"):
        require_columns_of_windows(windows, merge_into(store, tmp_path, "order_id"), open_table)


def test_the_columns_of_files_are_those_of_their_external_table(store: ControlStore, tmp_path: Path) -> None:
    fields = [{"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("id", "amount")]
    schema = json.dumps({"type": "struct", "fields": fields})
    files = ExternalTable("f", "file:///f", FileFormat.CSV, schema)
    table(tmp_path / "source", "path", version=1, properties={EXTERNAL_TABLE_PROPERTY: to_json(files)})
    commit(tmp_path / "source", 2, add("list.parquet", stats=STATS))
    windows = initial(store, tmp_path, StreamMode.INSERT_ONLY).transaction.windows
    require_columns_of_windows(windows, merge_into(store, tmp_path, "id"), open_table)
    with pytest.raises(MissingMergeKey, match="it has id, amount"):
        require_columns_of_windows(windows, merge_into(store, tmp_path, "path"), open_table)


def test_what_is_pinned_is_told_in_a_line_and_in_plain_values(
    store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table(tmp_path / "target", "id", "amount")
    commit(tmp_path / "source", 1, add("a.parquet", stats=STATS))
    commit(tmp_path / "source", 2, add("b.parquet", stats=STATS), remove("a.parquet"))
    commit(tmp_path / "source", 3, add("c.parquet", stats=STATS, data_change=False))
    opened = begun(store, tmp_path, "one")
    assert isinstance(opened, Opened)
    with caplog.at_level(logging.INFO, "tidemark.streams.worker.pinned"):
        (pinned,) = tell_pinned(opened.transaction, open_table)
    assert caplog.messages == ["Stream s: pinned versions (0, 3], 3 commits, 3 files, about 20 change records"]
    counted = {"versions": 3, "files": 3, "estimated_rows": 20}
    assert facts_of_pinned(pinned) == {"stream": "s", "from": 0, "to": 3, "initial_rows": False, **counted}


def initial(store: ControlStore, tmp_path: Path, mode: StreamMode = StreamMode.STANDARD) -> Opened:
    """The first window of a new stream at the newest version, with the rows that are there."""
    source = TableRef("source", f"file://{tmp_path}/source", "id-source")
    head = open_table(source).head()
    create_stream(
        store, name="s", source=source, mode=mode, at_version=head, who="t", initial_rows=True, or_replace=True
    )
    table(tmp_path / "target", "id", "amount")
    opened = begun(store, tmp_path, "one")
    assert isinstance(opened, Opened)
    return opened


def test_the_first_window_is_told_with_the_rows_of_the_snapshot(
    store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(tmp_path / "source", 1, add("a.parquet", stats=STATS), add("b.parquet", stats=STATS))
    commit(tmp_path / "source", 2, add("c.parquet", stats=STATS), remove("a.parquet"))
    opened = initial(store, tmp_path)
    with caplog.at_level(logging.INFO, "tidemark.streams.worker.pinned"):
        (pinned,) = tell_pinned(opened.transaction, open_table)
    assert caplog.messages == ["Stream s: pinned with the rows at version 2, 2 files, about 20 rows"]
    counted = {"versions": 0, "files": 2, "estimated_rows": 20}
    assert facts_of_pinned(pinned) == {"stream": "s", "from": 2, "to": 2, "initial_rows": True, **counted}


def test_a_snapshot_whose_rows_nobody_counted_is_told_with_its_files(store: ControlStore, tmp_path: Path) -> None:
    commit(tmp_path / "source", 1, add("a.parquet", stats=STATS), add("b.parquet", stats=None))
    (pinned,) = tell_pinned(initial(store, tmp_path).transaction, open_table)
    assert (pinned.files, pinned.rows) == (2, None)


def test_the_files_of_an_external_table_are_the_rows_of_its_list(store: ControlStore, tmp_path: Path) -> None:
    commit(tmp_path / "source", 1, add("list.parquet", stats=STATS))
    (pinned,) = tell_pinned(initial(store, tmp_path, StreamMode.INSERT_ONLY).transaction, open_table)
    assert (pinned.files, pinned.rows) == (10, None)


def test_a_delivered_window_is_told_with_the_same_facts(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id")
    empty = begun(store, tmp_path, "empty")
    assert isinstance(empty, Delivered)
    counted = {"versions": 0, "files": None, "estimated_rows": None}
    (window,) = empty.result.windows
    assert facts_of_delivered(window) == {"stream": "s", "from": 0, "to": 0, "initial_rows": False, **counted}


def test_a_long_window_is_told_without_counts(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id", "amount")
    for version in range(1, MOST_VERSIONS + 2):
        commit(tmp_path / "source", version, add(f"{version}.parquet"))
    opened = begun(store, tmp_path, "one")
    assert isinstance(opened, Opened)
    (long,) = tell_pinned(opened.transaction, open_table)
    assert (long.versions, long.files) == (MOST_VERSIONS + 1, None)


def test_a_window_that_cannot_be_counted_is_told_all_the_same(store: ControlStore, tmp_path: Path) -> None:
    table(tmp_path / "target", "id", "amount")
    gone = [commit(tmp_path / "source", version, add(f"{version}.parquet")) for version in (1, 2)]
    opened = begun(store, tmp_path, "one")
    assert isinstance(opened, Opened)
    gone[0].unlink()
    (pinned,) = tell_pinned(opened.transaction, open_table)
    assert (pinned.versions, pinned.files, pinned.rows) == (2, None, None)
